import { constants } from 'node:http2';

/** An answer of the REST interface. `body` is parsed JSON, or text. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  readonly bytes: Uint8Array;
}

/** A refused call, with everything needed to see the cause. */
export class UnexpectedAnswer extends Error {
  constructor(call: string, answer: Answer, expected: readonly number[]) {
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body, null, 2);
    super(`${call} answered ${answer.status}, expected ${expected.join(' or ')}:\n${text}`);
    this.name = 'UnexpectedAnswer';
  }
}

export interface Call {
  readonly token?: string | undefined;
  readonly json?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
}

/** A caller of the REST interface at one base URL. */
export interface Api {
  readonly baseUrl: string;
  /** Any answer, whatever its status. */
  send(method: string, path: string, call?: Call): Promise<Answer>;
  /** The answer when its status is one of `expected`; throws UnexpectedAnswer otherwise. */
  expect(expected: number | readonly number[], method: string, path: string, call?: Call): Promise<Answer>;
}

export function createApi(baseUrl: string): Api {
  const send = async (method: string, path: string, call: Call = {}): Promise<Answer> => {
    const response = await fetchAgain(new URL(path, baseUrl), {
      method,
      headers: headersOf(call),
      body: bodyOf(call),
      redirect: 'manual',
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes, body: parse(response, bytes) };
  };
  return {
    baseUrl,
    send,
    expect: async (expected, method, path, call) => {
      const wanted = typeof expected === 'number' ? [expected] : expected;
      const answer = await send(method, path, call);
      if (!wanted.includes(answer.status)) {
        throw new UnexpectedAnswer(`${method} ${path}`, answer, wanted);
      }
      return answer;
    },
  };
}

const mostAttempts = 5;

/**
 * As fetch. A proxy that ends an HTTP/2 connection refuses the streams on it that it has not begun; such requests were not
 * processed and may be sent again (RFC 9113, section 8.7).
 */
async function fetchAgain(url: URL, request: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fetch(url, request);
    } catch (error) {
      if (attempt === mostAttempts || !isRefusedStream(error)) throw error;
    }
  }
}

function isRefusedStream(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly http2ErrorCode?: number } };
  return cause?.http2ErrorCode === constants.NGHTTP2_REFUSED_STREAM;
}

function headersOf(call: Call): Record<string, string> {
  const type =
    call.form === undefined
      ? call.json === undefined && call.text === undefined
        ? undefined
        : 'application/json'
      : 'application/x-www-form-urlencoded';
  return {
    ...(type === undefined ? {} : { 'content-type': type }),
    ...(call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }),
    ...call.headers,
  };
}

function bodyOf(call: Call): string | null {
  if (call.form !== undefined) {
    return new URLSearchParams(call.form).toString();
  }
  if (call.text !== undefined) {
    return call.text;
  }
  return call.json === undefined ? null : JSON.stringify(call.json);
}

function parse(response: Response, bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes);
  return /[/+]json/.test(response.headers.get('content-type') ?? '') && text !== '' ? JSON.parse(text) : text;
}
