// A custom chat with React and the `ai` package. `/api/chat` is a route of your own server: it forwards the request to
// `/ask/ui-messages`, with a token that browsers never see (`opora tenant token acme --scope ask`).
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

const transport = new DefaultChatTransport({ api: '/api/chat' });

function Chat() {
  const [question, setQuestion] = useState('');
  const { messages, sendMessage, status, error } = useChat({ transport });
  const submit = (event) => {
    event.preventDefault();
    sendMessage({ text: question });
    setQuestion('');
  };
  const part = (one, place) => {
    if (one.type === 'text') return <p key={place}>{one.text}</p>;
    if (one.type === 'source-url' || one.type === 'source-document') return <cite key={place}>{one.title}</cite>;
    if (one.type === 'data-turn') return <small key={place}>{one.data.outcome}</small>;
    return null;
  };
  return (
    <form onSubmit={submit}>
      {messages.map((message) => <article key={message.id} className={message.role}>{message.parts.map(part)}</article>)}
      {error && <p role="alert">{error.message}</p>}
      <input aria-label="Question" value={question} onChange={(event) => setQuestion(event.target.value)} />
      <button disabled={!question || status !== 'ready'}>Send</button>
    </form>
  );
}

createRoot(document.querySelector('#root')).render(<Chat />);
