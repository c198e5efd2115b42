import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { ChannelOptions } from '@grpc/grpc-js';

const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;
const KEEPALIVE_MS = 10_000;

/**
 * Bytes that may be on their way before the reader has said that it took some: by default 64 KiB, so that a docket or a batch
 * of a megabyte stops sixteen times for an answer.
 */
export const FLOW_WINDOW_BYTES = { stream: 1024 * 1024, connection: 4 * 1024 * 1024 } as const;

/** Calls of one connection at the same time. */
export const MAX_CONCURRENT_STREAMS = 1024;

const BOTH_SIDES: ChannelOptions = {
  'grpc.max_receive_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.max_send_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.keepalive_time_ms': KEEPALIVE_MS,
  'grpc.keepalive_timeout_ms': KEEPALIVE_MS,
  'grpc.enable_channelz': 0,
};

/** Of one connection: when so much of what a client asked for waits to be read, it may open no further call on it. */
const SESSION_MEMORY_MIB = 64;

export const SERVER_OPTIONS: ChannelOptions = {
  ...BOTH_SIDES,
  'grpc.max_concurrent_streams': MAX_CONCURRENT_STREAMS,
  'grpc-node.max_session_memory': SESSION_MEMORY_MIB,
};

export const CLIENT_OPTIONS: ChannelOptions = {
  ...BOTH_SIDES,
  // of a stream and of the connection: grpc-js has one figure for both
  'grpc-node.flow_control_window': FLOW_WINDOW_BYTES.stream,
  'grpc.keepalive_permit_without_calls': 1,
  // TLS server names may not be IP addresses; the name is fixed and the SPIFFE id is what is checked
  'grpc.ssl_target_name_override': 'chancery.internal',
  'grpc.default_authority': 'chancery.internal',
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // a pod that was replaced has another address under its old name; by default that is asked for once in 30 s
  'grpc.dns_min_time_between_resolutions_ms': 1_000,
};

/** `/package.Service/Method`. */
export function methodPath(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Bytes of a message or of what makes one. */
export function encodeMessage(schema: DescMessage, value: unknown): Buffer {
  const bytes = toBinary(schema, create(schema, value as MessageInitShape<DescMessage>));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
