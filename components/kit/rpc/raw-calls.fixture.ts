import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { waitFor } from '#kit/testing/wait.ts';
import type { Answer, CallSchema } from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import { decodeAnswers, encodeCalls } from './frames.ts';
import type { FixedWorkload } from './workload.fixture.ts';

/** A stream of calls, and an HTTP/2 connection, without the rules of the client. */
export interface RawCalls {
  readonly session: ClientHttp2Session;
  /** Parts of answers in the order of arrival. */
  readonly answers: Answer[];
  readonly stream: ClientHttp2Stream;
  /** `grpc-status`, once the stream has ended. */
  status: string | undefined;
  isDraining: boolean;
  messages: number;
  /** Sends bytes as one message. */
  write(message: Buffer): void;
  send(...calls: MessageInitShape<typeof CallSchema>[]): void;
  cancel(...numbers: number[]): void;
  /** Waits for the whole answer of a call. */
  answer(number: number): Promise<Answer>;
}

/** Prefixes a message as gRPC does. */
export function grpcMessage(bytes: Buffer, length = bytes.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

/** Connects to a server of this host. */
export function connectRaw(port: number, workload: FixedWorkload): ClientHttp2Session {
  const { key, cert, ca } = workload.current();
  // The test's own buffers are not to end the connection.
  const options = { key, cert, ca, checkServerIdentity: () => undefined, maxSessionMemory: 4_096 };
  const session = connect(`https://127.0.0.1:${port}`, options);
  session.on('error', () => {});
  return session;
}

/** Opens a stream of calls on a connection. With `isRead` false nothing of it is read. */
export function openRawCalls(session: ClientHttp2Session, isRead = true): RawCalls {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/chancery.rpc.v1.MultiplexService/Exchange',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const raw: RawCalls = {
    session,
    answers: [],
    stream,
    status: undefined,
    isDraining: false,
    messages: 0,
    write: (message) => void stream.write(grpcMessage(message)),
    send: (...calls) => raw.write(encodeCalls({ calls: calls.map(frameOf) })),
    cancel: (...numbers) => raw.write(encodeCalls({ cancelled: numbers })),
    answer: (number) => waitFor(() => wholeAnswer(raw.answers, number), { what: `answer ${number}` }),
  };
  const note = (headers: object) => {
    const [, status] = Object.entries(headers).find(([name]) => name === 'grpc-status') ?? [];
    if (status !== undefined) raw.status = String(status);
  };
  stream.on('response', note);
  stream.on('trailers', note);
  stream.on('error', () => {});
  if (isRead) follow(raw);
  return raw;
}

/** A call of the method that the fixture's server answers. */
function frameOf(call: MessageInitShape<typeof CallSchema>): MessageInitShape<typeof CallSchema> {
  const method = '/chancery.tenant.v1.RevocationService/ListRevocations';
  return { method, request: Buffer.from([16, 1]), ...call };
}

function follow(raw: RawCalls): void {
  let received = Buffer.alloc(0);
  raw.stream.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 5 && received.length >= 5 + received.readUInt32BE(1)) {
      const end = 5 + received.readUInt32BE(1);
      const { answers, draining } = decodeAnswers(received.subarray(5, end));
      received = received.subarray(end);
      raw.answers.push(...answers);
      raw.isDraining ||= draining;
      raw.messages += 1;
    }
  });
}

function wholeAnswer(answers: readonly Answer[], number: number): Answer | undefined {
  const parts = answers.filter((answer) => answer.number === number);
  const last = parts.at(-1);
  if (last === undefined || last.partial) return undefined;
  return { ...last, response: Buffer.concat(parts.map(({ response }) => response)) };
}
