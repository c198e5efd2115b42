import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import {
  type ExchangeRequest,
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import { decodeMessage, Undecodable } from './decode.ts';
import { encodeMessage } from './wire.ts';

/** Encodes one message of a client. */
export function encodeCalls(request: MessageInitShape<typeof ExchangeRequestSchema>): Buffer {
  return encodeMessage(ExchangeRequestSchema, request);
}

/** Encodes one message of a server. */
export function encodeAnswers(response: MessageInitShape<typeof ExchangeResponseSchema>): Buffer {
  return encodeMessage(ExchangeResponseSchema, response);
}

/** Throws RangeError for bytes that are no ExchangeRequest or have too many fields. */
export function decodeCalls(bytes: Buffer): ExchangeRequest {
  const message = decoded(ExchangeRequestSchema, bytes);
  if (message.calls.length > 1) for (const call of message.calls) call.request = owned(call.request);
  return message;
}

/** Throws RangeError for bytes that are no ExchangeResponse or have too many fields. */
export function decodeAnswers(bytes: Buffer): ExchangeResponse {
  const message = decoded(ExchangeResponseSchema, bytes);
  if (message.answers.length > 1)
    for (const answer of message.answers) answer.response = owned(answer.response);
  return message;
}

function decoded<D extends DescMessage>(schema: D, bytes: Buffer): MessageShape<D> {
  const message = decodeMessage(schema, bytes);
  if (message instanceof Undecodable) throw new RangeError(message.reason);
  return message as MessageShape<D>;
}

/** What is decoded from a request or response keeps its bytes; without a copy a small record would keep the whole batch. */
function owned(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
