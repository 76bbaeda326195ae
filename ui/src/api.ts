/** Requests to the service, with a visitor token that is renewed before it expires. */

import type { Config, FileInfo, Session } from './contract';
import { exclusively, type Memory } from './storage';

const RENEW_BEFORE_MS = 60_000;

/** Error of the service, with its stable code. Status 0: the service was not reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail = '',
    /** Seconds to wait, if the service specifies them. */
    readonly retryAfter = 0,
  ) {
    super(code);
  }
}

interface Refusal {
  readonly code?: string;
  readonly detail?: string;
}

interface Options {
  readonly json?: unknown;
  readonly signal?: AbortSignal;
  readonly accept?: string;
}

export class Api {
  private session: Session | undefined;
  private renewAt = 0;

  constructor(
    private readonly config: Config,
    private readonly memory: Memory,
    /** Called when a session starts or is renewed: the site may have changed. */
    private readonly renewed: (session: Session, customerChanged: boolean) => void,
  ) {}

  /** Return the session of this browser. Tabs take turns, so that all share one visitor. */
  async start(): Promise<Session> {
    return exclusively(`opora:session:${this.config.site}`, async () => {
      const { site, identity } = this.config;
      const visitor = this.memory.read().token ?? null;
      const response = await this.send('POST', '/widget/sessions', { json: { site, identity, visitor } });
      const session = (await response.json()) as Session;
      this.session = session;
      this.renewAt = Date.now() + session.expires_in * 1_000 - RENEW_BEFORE_MS;
      this.renewed(session, this.memory.claim(session));
      return session;
    });
  }

  async json<T>(method: string, path: string, json?: unknown): Promise<T> {
    const response = await this.request(method, path, json === undefined ? {} : { json });
    const text = await response.text();
    return (text ? JSON.parse(text) : null) as T;
  }

  request(method: string, path: string, options: Options = {}): Promise<Response> {
    return this.authorized((token) => this.send(method, path, options, token));
  }

  /** Send a file. Uses XMLHttpRequest, because fetch does not report upload progress. */
  upload(path: string, file: File, signal: AbortSignal, progress: (percent: number) => void): Promise<FileInfo> {
    const form = new FormData();
    form.append('file', file);
    const send = (token: string): Promise<FileInfo> =>
      new Promise((resolve, reject) => {
        const request = new XMLHttpRequest();
        request.open('POST', this.config.base + path);
        if (this.config.locale) request.setRequestHeader('Accept-Language', this.config.locale);
        request.setRequestHeader('Authorization', `Bearer ${token}`);
        request.responseType = 'json';
        request.upload.onprogress = ({ loaded, total }) => progress(Math.floor((100 * loaded) / (total || 1)));
        request.onerror = request.onabort = () => reject(new Problem(0, 'unreachable'));
        request.onload = () => {
          const answer = request.response as (FileInfo & Refusal) | null;
          if (request.status < 300 && answer) resolve(answer);
          else {
            const after = Number(request.getResponseHeader('Retry-After')) || 0;
            reject(new Problem(request.status, answer?.code ?? 'unknown', answer?.detail, after));
          }
        };
        signal.addEventListener('abort', () => request.abort());
        request.send(form);
      });
    return this.authorized(send);
  }

  private async authorized<T>(send: (token: string) => Promise<T>): Promise<T> {
    if (!this.session || Date.now() > this.renewAt) await this.start();
    try {
      return await send(this.session!.token);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 401) throw problem;
      await this.start();
      return send(this.session!.token);
    }
  }

  private async send(method: string, path: string, options: Options, token?: string): Promise<Response> {
    const headers = new Headers();
    if (this.config.locale) headers.set('Accept-Language', this.config.locale);
    if (options.accept) headers.set('Accept', options.accept);
    if (token) headers.set('Authorization', `Bearer ${token}`);
    let body: string | null = null;
    if (options.json !== undefined) {
      headers.set('Content-Type', 'application/json');
      body = JSON.stringify(options.json);
    }
    let response: Response;
    try {
      response = await fetch(this.config.base + path, {
        method,
        headers,
        body,
        signal: options.signal ?? null,
        credentials: 'omit',
        cache: 'no-store',
        referrerPolicy: 'strict-origin',
      });
    } catch {
      throw new Problem(0, 'unreachable');
    }
    if (response.ok) return response;
    const problem = (await response.json().catch(() => ({}))) as Refusal;
    const after = Number(response.headers.get('Retry-After')) || 0;
    throw new Problem(response.status, problem.code ?? 'unknown', problem.detail, after);
  }
}
