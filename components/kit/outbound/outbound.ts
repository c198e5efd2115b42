import { type LookupAddress, lookup as lookUpName } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { isPublicAddress } from './address.ts';

/** Why nothing, or no usable answer, came back. It tells nothing about what is behind an address. */
type OutboundFault = 'address' | 'redirect' | 'too-large' | 'timeout' | 'encoding' | 'unreachable';

export class OutboundError extends Error {
  readonly fault: OutboundFault;

  constructor(fault: OutboundFault, cause?: unknown) {
    super(texts[fault], cause === undefined ? undefined : { cause });
    this.name = 'OutboundError';
    this.fault = fault;
  }
}

const texts: Readonly<Record<OutboundFault, string>> = {
  address: 'the address is not allowed: it must be https, of a public host, without a password',
  redirect: 'the server redirects, which is not followed',
  'too-large': 'the answer is too large',
  timeout: 'the server did not answer in time',
  encoding: 'the answer is compressed',
  unreachable: 'the server cannot be reached',
};

interface OutboundLimits {
  /** For everything, from the name to the last byte. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

const defaultLimits: OutboundLimits = { timeoutMs: 5_000, maxBytes: 262_144 };

interface OutboundRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly limits?: OutboundLimits;
  /** Admits http too, for answers that carry a signature of their own; the host must be public all the same. */
  readonly isSigned?: boolean;
}

interface OutboundAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The one door for requests to addresses that people supply (server-side request forgery). */
export interface Outbound {
  /** Whether an address may be asked, as far as its text tells; names are judged when they are resolved. */
  admits(url: string): boolean;
  /** @throws OutboundError */
  send(url: string, request?: OutboundRequest): Promise<OutboundAnswer>;
  /** The same in the shape of `fetch`, for libraries. */
  readonly fetch: typeof fetch;
  close(): Promise<void>;
}

type Lookup = (hostname: string) => Promise<readonly LookupAddress[]>;

interface OutboundOptions {
  /** Exact origins that are allowed whatever their scheme and address. */
  readonly allowed: readonly string[];
  /** The resolver of the system when absent. */
  readonly lookup?: Lookup;
}

/** The setting: exact origins, separated by commas. */
export const outboundAllowed = z
  .string()
  .default('')
  .transform((text) => text.split(',').map((origin) => origin.trim()))
  .transform((origins) => origins.filter((origin) => origin !== ''))
  .refine(
    (origins) => origins.every((origin) => URL.parse(origin)?.origin === origin),
    'expected origins, as https://host:port',
  );

const systemLookup: Lookup = (hostname) =>
  new Promise((resolve, reject) => {
    lookUpName(hostname, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error)));
  });

/**
 * Requests over https without redirects, to public addresses alone. The address is judged inside the connection's own
 * lookup, so the one that was judged is the one that is dialled.
 */
export function createOutbound({ allowed, lookup = systemLookup }: OutboundOptions): Outbound {
  const free = new Agent({
    connect: { lookup: (name, options, done) => resolve(lookup, name)(options, done) },
  });
  const guarded = new Agent({
    connect: { lookup: (name, options, done) => resolve(lookup, name, isPublicAddress)(options, done) },
  });
  const isException = (url: URL) => allowed.includes(url.origin);

  function admit(text: string, schemes: readonly string[] = ['https:']): URL | undefined {
    const url = URL.parse(text);
    if (url === null || url.username !== '' || url.password !== '') return undefined;
    if (isException(url)) return url;
    if (!schemes.includes(url.protocol)) return undefined;
    // No lookup is made for a literal.
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return isIP(host) === 0 || isPublicAddress(host) ? url : undefined;
  }

  async function send(text: string, wanted: OutboundRequest = {}): Promise<OutboundAnswer> {
    const url = admit(text, wanted.isSigned ? ['https:', 'http:'] : undefined);
    if (url === undefined) throw new OutboundError('address');
    const { limits = defaultLimits, method = 'GET', headers = {}, body } = wanted;
    const signal = AbortSignal.timeout(limits.timeoutMs);
    try {
      const answer = await request(url, {
        dispatcher: isException(url) ? free : guarded,
        method,
        headers: { ...headers, 'accept-encoding': 'identity' },
        ...(body !== undefined && { body }),
        signal,
      });
      const read = isRedirect(answer.statusCode) ? 'redirect' : await readBody(answer, limits);
      if (typeof read !== 'string')
        return { status: answer.statusCode, headers: flat(answer.headers), body: read };
      // What is left of the answer is not read; the end of its connection is no fault of its own.
      answer.body.on('error', () => undefined).destroy();
      throw new OutboundError(read);
    } catch (error) {
      throw toOutboundError(error, signal);
    }
  }

  return {
    admits: (text) => admit(text) !== undefined,
    send,
    fetch: async (input, init) => {
      const source = new Request(input, init);
      const body = source.body === null ? undefined : await source.text();
      const answer = await send(source.url, {
        method: source.method === 'POST' ? 'POST' : 'GET',
        headers: Object.fromEntries(source.headers),
        ...(body !== undefined && { body }),
      });
      const isEmpty = answer.status === 204 || answer.status === 205;
      return new Response(isEmpty ? null : new Uint8Array(answer.body), {
        status: answer.status,
        headers: answer.headers,
      });
    },
    close: async () => {
      await Promise.all([free.close(), guarded.close()]);
    },
  };
}

const isRedirect = (status: number) => status >= 300 && status < 400;

function resolve(lookup: Lookup, hostname: string, isAllowed: (address: string) => boolean = () => true) {
  return (options: { readonly all?: boolean | undefined }, done: Parameters<LookupFunction>[2]): void => {
    lookup(hostname).then(
      (found) => {
        const usable = found.filter(({ address }) => isAllowed(address));
        const [first] = usable;
        if (first === undefined) done(new OutboundError('address'), '', 0);
        else if (options.all === true) done(null, [...usable]);
        else done(null, first.address, first.family);
      },
      (error: unknown) => done(error as Error, '', 0),
    );
  };
}

async function readBody(
  { headers, body }: Awaited<ReturnType<typeof request>>,
  { maxBytes }: OutboundLimits,
): Promise<Buffer | OutboundFault> {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return 'encoding';
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) return 'too-large';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as const],
  );
  return Object.fromEntries(entries);
}

function toOutboundError(error: unknown, signal: AbortSignal): OutboundError {
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    if (one instanceof OutboundError) return one;
  }
  return new OutboundError(signal.aborted ? 'timeout' : 'unreachable', error);
}
