import { rmSync } from 'node:fs';
import { create, type DescMethod, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Metadata, Server, ServerCredentials, type ServerWritableStream, status } from '@grpc/grpc-js';
import type { Logger } from '#kit/log/log.ts';
import {
  SpiffeWorkloadAPI,
  X509BundlesResponseSchema,
  X509SVIDResponseSchema,
} from '#protos/gen/workloadapi_pb.js';
import type { Leaf } from '../authority/authority.ts';
import { issuerError } from '../errors.ts';

const streamsLimit = 64;

/** A full snapshot for one workload; each one replaces the previous one. */
interface Snapshot {
  readonly trustDomain: string;
  readonly spiffeId: string;
  readonly leaf: Leaf;
  /** DER of the trust domain's authorities, concatenated. */
  readonly bundle: Uint8Array;
}

export interface WorkloadSocket {
  /** Answers new callers with the snapshot and pushes it to open streams. */
  publish(snapshot: Snapshot): void;
  /** Ends every stream and removes the socket file. */
  close(): Promise<void>;
}

type Stream = ServerWritableStream<unknown, Uint8Array>;
type Render = (snapshot: Snapshot) => Uint8Array;

const RENDER: Readonly<Record<string, Render>> = {
  FetchX509SVID: svidResponse,
  FetchX509Bundles: bundlesResponse,
};

/**
 * Serves the X.509 part of the SPIFFE Workload API on a unix socket. Callers must send `workload.spiffe.io: true`
 * (Workload API standard, section 3, against request forgery); before the first publish they get PERMISSION_DENIED.
 *
 * Errors: unavailable/ISSUER_SOCKET.
 */
export async function openWorkloadSocket(path: string, log: Logger): Promise<WorkloadSocket> {
  const server = new Server();
  const streams = new Map<Stream, Render>();
  let latest: Snapshot | undefined;
  const serve = (render: Render) => (stream: Stream) => {
    const refusal = judge(stream.metadata, latest, streams.size);
    if (refusal !== undefined || latest === undefined) {
      stream.emit('error', refusal);
      return;
    }
    streams.set(stream, render);
    stream.once('cancelled', () => streams.delete(stream));
    stream.once('close', () => streams.delete(stream));
    stream.write(render(latest));
  };
  const methods = SpiffeWorkloadAPI.methods.map((method) => [method.localName, method] as const);
  server.addService(
    Object.fromEntries(methods.map(([name, method]) => [name, wireMethod(method)])),
    Object.fromEntries(methods.map(([name, method]) => [name, serve(RENDER[method.name] ?? svidResponse)])),
  );
  await bind(server, path);
  log.debug({ socket: path }, 'workload api listens');
  return {
    publish: (snapshot) => {
      latest = snapshot;
      for (const [stream, render] of streams) stream.write(render(snapshot));
    },
    close: async () => {
      // forceShutdown reaches open connections only because channelz is on, which is the default.
      server.forceShutdown();
      rmSync(path, { force: true });
    },
  };
}

interface Refusal {
  readonly code: status;
  readonly details: string;
}

function judge(metadata: Metadata, latest: Snapshot | undefined, open: number): Refusal | undefined {
  const [header] = metadata.get('workload.spiffe.io');
  if (header !== 'true') {
    return { code: status.INVALID_ARGUMENT, details: 'the security header workload.spiffe.io is missing' };
  }
  if (latest === undefined) return { code: status.PERMISSION_DENIED, details: 'no identity issued' };
  if (open >= streamsLimit) return { code: status.RESOURCE_EXHAUSTED, details: 'too many streams' };
  return undefined;
}

function svidResponse({ spiffeId, leaf, bundle }: Snapshot): Uint8Array {
  const svid = { spiffeId, x509Svid: leaf.certificateDer, x509SvidKey: leaf.keyDer, bundle };
  return toBinary(X509SVIDResponseSchema, create(X509SVIDResponseSchema, { svids: [svid] }));
}

function bundlesResponse({ trustDomain, bundle }: Snapshot): Uint8Array {
  const bundles = { [`spiffe://${trustDomain}`]: bundle };
  return toBinary(X509BundlesResponseSchema, create(X509BundlesResponseSchema, { bundles }));
}

function wireMethod(method: DescMethod) {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: true,
    requestSerialize: (value: Uint8Array) => Buffer.from(value),
    requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
    responseSerialize: (value: Uint8Array) => Buffer.from(value),
    responseDeserialize: (bytes: Buffer) => bytes,
  };
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => {
      if (error === null) resolve();
      else {
        const text = `the Workload API socket ${path} cannot be opened: ${error.message}`;
        reject(issuerError('ISSUER_SOCKET', text, { cause: error }));
      }
    });
  });
}
