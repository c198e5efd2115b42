import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { ChannelOptions } from '@grpc/grpc-js';

/** Maximum size of a request or response. */
export const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;
const keepaliveMs = 10_000;

/**
 * Flow-control windows. The default is 64 KiB, with which a docket or batch of a megabyte would stop sixteen times for
 * an acknowledgement.
 */
export const FLOW_WINDOW_BYTES = { stream: 1024 * 1024, connection: 4 * 1024 * 1024 } as const;

/** Maximum number of streams of one connection, and of running calls from which on a stream of calls is not read. */
export const MAX_CONCURRENT_STREAMS = 1024;

const BOTH_SIDES: ChannelOptions = {
  'grpc.max_receive_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.max_send_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.keepalive_time_ms': keepaliveMs,
  'grpc.keepalive_timeout_ms': keepaliveMs,
  'grpc.enable_channelz': 0,
};

/** Bytes of messages that carry several calls or answers on one stream. */
export const BATCH_BYTES = {
  /** A larger request is a call of its own, so that small calls do not wait behind it. */
  request: 256 * 1024,
  /** A larger response is sent in parts of this size. */
  part: 128 * 1024,
  /** Nothing is added to a message of this size. */
  batch: 256 * 1024,
  /** Maximum size of a client's message. */
  message: 1024 * 1024,
} as const;

/** Serialises a message that is bytes already. */
export function asIs<T>(bytes: T): T {
  return bytes;
}

/** Memory of one connection: when so much of a client's answers waits to be sent, it may open no further call on it. */
const SESSION_MEMORY_MIB = 64;

export const SERVER_OPTIONS: ChannelOptions = {
  ...BOTH_SIDES,
  'grpc.max_concurrent_streams': MAX_CONCURRENT_STREAMS,
  'grpc-node.max_session_memory': SESSION_MEMORY_MIB,
};

export const CLIENT_OPTIONS: ChannelOptions = {
  ...BOTH_SIDES,
  // For a stream and for the connection: grpc-js has one setting for both.
  'grpc-node.flow_control_window': FLOW_WINDOW_BYTES.stream,
  'grpc.keepalive_permit_without_calls': 1,
  // TLS server names may not be IP addresses. The name is fixed, and the SPIFFE id is verified.
  'grpc.ssl_target_name_override': 'chancery.internal',
  'grpc.default_authority': 'chancery.internal',
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // A replaced pod has another address under its old name; the default is one resolution in 30 s.
  'grpc.dns_min_time_between_resolutions_ms': 1_000,
};

/** `/package.Service/Method`. */
export function methodPath(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Encodes a message, or the initial value of one. */
export function encodeMessage(schema: DescMessage, value: unknown): Buffer {
  const bytes = toBinary(schema, create(schema, value as MessageInitShape<DescMessage>));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
