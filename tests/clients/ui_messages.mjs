// Asks as `useChat` does, by the SDK's own transport, and prints the message that a chat would show.
// Arguments: the service's address, a token, the question.
import { DefaultChatTransport, readUIMessageStream } from 'ai';

const [url, token, question] = process.argv.slice(2);
const transport = new DefaultChatTransport({
  api: `${url}/ask/ui-messages`,
  headers: { Authorization: `Bearer ${token}` },
});
const stream = await transport.sendMessages({
  chatId: 'chat',
  trigger: 'submit-message',
  messages: [{ id: 'question', role: 'user', parts: [{ type: 'text', text: question }] }],
});
const faults = [];
let states = 0;
let shown;
for await (const message of readUIMessageStream({ stream, terminateOnError: true, onError: (fault) => faults.push(String(fault)) })) {
  states += 1;
  shown = message;
}
console.log(JSON.stringify({ states, faults, message: shown }));
