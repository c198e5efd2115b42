// Limits of nats-server.
const CONTROL_LINE_LIMIT_BYTES = 4096;
const CR = 13;
const LF = 10;

/** One operation of the NATS client protocol. */
export type Operation =
  | { readonly kind: 'connect'; readonly options: ConnectOptions }
  | { readonly kind: 'ping' }
  | { readonly kind: 'pong' }
  | { readonly kind: 'sub'; readonly subject: string; readonly queue?: string; readonly sid: string }
  | { readonly kind: 'unsub'; readonly sid: string; readonly max: number }
  | Publication;

export interface Publication {
  readonly kind: 'pub';
  readonly subject: string;
  readonly reply?: string;
  /** Length of the header block in bytes, 0 for PUB. */
  readonly headerBytes: number;
  /** Headers and payload. */
  readonly body: Buffer;
}

export interface ConnectOptions {
  readonly verbose: boolean;
  readonly echo: boolean;
  readonly headers: boolean;
  readonly noResponders: boolean;
}

/** A protocol error that ends the connection; the message is the text of -ERR. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

type Waiting = Omit<Publication, 'body'> & { readonly totalBytes: number };

/**
 * Incremental parser of one client's bytes (NATS client protocol). Holds at most one control line or one payload of
 * the permitted size.
 */
export class Parser {
  readonly #payloadLimitBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;
  #waiting: Waiting | undefined;

  constructor(payloadLimitBytes: number) {
    this.#payloadLimitBytes = payloadLimitBytes;
  }

  /** Yields the operations that these bytes complete. Throws ProtocolError while iterating. */
  *read(chunk: Buffer): Generator<Operation> {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      const operation = this.#waiting === undefined ? this.#line() : this.#body(this.#waiting);
      if (operation === 'more') return;
      if (operation !== 'again') yield operation;
    }
  }

  #take(bytes: number): Buffer {
    const [first = Buffer.alloc(0)] = this.#chunks;
    const whole = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    const rest = whole.subarray(bytes);
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#length = rest.length;
    return whole.subarray(0, bytes);
  }

  #line(): Operation | 'more' | 'again' {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [buffer] = this.#chunks;
    const end = buffer?.indexOf(LF) ?? -1;
    if (end > CONTROL_LINE_LIMIT_BYTES || (end < 0 && this.#length > CONTROL_LINE_LIMIT_BYTES)) {
      throw new ProtocolError('Maximum Control Line Exceeded');
    }
    if (end < 0) return 'more';
    const text = this.#take(end + 1)
      .toString('utf8')
      .trimEnd();
    return this.#command(text);
  }

  #body(waiting: Waiting): Operation | 'more' {
    const { totalBytes, ...publication } = waiting;
    if (this.#length < totalBytes + 2) return 'more';
    const bytes = this.#take(totalBytes + 2);
    if (bytes[totalBytes] !== CR || bytes[totalBytes + 1] !== LF) {
      throw new ProtocolError('Unknown Protocol Operation');
    }
    this.#waiting = undefined;
    return { ...publication, body: bytes.subarray(0, totalBytes) };
  }

  #command(text: string): Operation | 'again' {
    const space = text.search(/[ \t]/);
    const verb = (space < 0 ? text : text.slice(0, space)).toUpperCase();
    const rest = space < 0 ? '' : text.slice(space + 1).trim();
    const words = rest === '' ? [] : rest.split(/[ \t]+/);
    switch (verb) {
      case 'PUB':
      case 'HPUB':
        this.#waiting = this.#publication(verb, words);
        return 'again';
      case 'SUB':
        return subscription(words);
      case 'UNSUB':
        return unsubscription(words);
      case 'CONNECT':
        return { kind: 'connect', options: connectOptions(rest) };
      case 'PING':
        return { kind: 'ping' };
      case 'PONG':
        return { kind: 'pong' };
      default:
        throw new ProtocolError('Unknown Protocol Operation');
    }
  }

  #publication(verb: 'PUB' | 'HPUB', words: readonly string[]): Waiting {
    const counts = verb === 'PUB' ? 1 : 2;
    const names = words.slice(0, words.length - counts);
    const [headerBytes = 0, totalBytes] =
      verb === 'PUB' ? [0, sizeOf(words.at(-1))] : [sizeOf(words.at(-2)), sizeOf(words.at(-1))];
    const [subject, reply] = names;
    if (subject === undefined || names.length > 2 || totalBytes === undefined || headerBytes > totalBytes) {
      throw new ProtocolError('Parser Error');
    }
    if (totalBytes > this.#payloadLimitBytes) throw new ProtocolError('Maximum Payload Violation');
    return { kind: 'pub', subject, headerBytes, totalBytes, ...(reply !== undefined && { reply }) };
  }
}

function sizeOf(word: string | undefined): number {
  if (word === undefined || !/^\d{1,9}$/.test(word)) throw new ProtocolError('Parser Error');
  return Number(word);
}

function subscription(words: readonly string[]): Operation {
  const [subject, second, third] = words;
  if (subject === undefined || second === undefined || words.length > 3)
    throw new ProtocolError('Parser Error');
  if (third === undefined) return { kind: 'sub', subject, sid: second };
  return { kind: 'sub', subject, queue: second, sid: third };
}

function unsubscription(words: readonly string[]): Operation {
  const [sid, max] = words;
  if (sid === undefined || words.length > 2) throw new ProtocolError('Parser Error');
  return { kind: 'unsub', sid, max: max === undefined ? 0 : sizeOf(max) };
}

function connectOptions(text: string): ConnectOptions {
  const parsed = parseObject(text);
  return {
    verbose: parsed['verbose'] === true,
    echo: parsed['echo'] !== false,
    headers: parsed['headers'] === true,
    noResponders: parsed['no_responders'] === true,
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch {
    // Answered below, like any other invalid line.
  }
  throw new ProtocolError('Parser Error');
}
