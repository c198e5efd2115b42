import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

export const megabyte = 1024 * 1024;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await bodyOf(request);
  response.writeHead(201, { 'content-type': 'application/json', server: 'leaky', 'x-powered-by': 'leaky' });
  const { url, method, headers } = request;
  response.end(JSON.stringify({ url, method, headers, bytes: body.length }));
}

/**
 * A register service that answers by the last segment of the path. `held` receives the functions that complete answers
 * which a test holds back.
 */
export function answerAsRegister(held: (() => void)[]): RequestListener {
  const answers: Readonly<Record<string, RequestListener>> = {
    plain: (_request, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('plain'),
    nothing: (_request, response) => response.writeHead(204).end(),
    'read-only': (_request, response) => response.writeHead(405, { allow: 'GET, HEAD' }).end(),
    large: (_request, response) => response.end(Buffer.alloc(8 * megabyte, 'x')),
    reset: (request) => request.socket.destroy(),
    echo: (request, response) => void echo(request, response).catch(() => response.destroy()),
    hop: (_request, response) => {
      const headers = [
        'connection',
        'close, x-private',
        'x-private',
        '1',
        'set-cookie',
        'a=1',
        'set-cookie',
        'b=2',
      ];
      response
        .writeHead(200, [...headers, 'x-frame-options', 'ALLOWALL', 'proxy-authenticate', 'Basic'])
        .end('ok');
    },
    stream: (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: first\n\n');
      held.push(() => response.end('data: last\n\n'));
    },
    break: (request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setImmediate(() => request.socket.destroy());
    },
    early: (_request, response) => {
      response.writeHead(409, { 'content-type': 'application/problem+json', connection: 'close' });
      response.end('{"code":"CONFLICT"}');
    },
  };
  return (request, response) => {
    const path = request.url?.split('?')[0] ?? '';
    const answer = answers[path.slice('/api/registers/'.length)] ?? answers['plain'];
    answer?.(request, response);
  };
}
