import { createPublicKey, X509Certificate } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import {
  X509SVIDRequestSchema,
  type X509SVIDResponse,
  X509SVIDResponseSchema,
} from '#protos/gen/workloadapi_pb.js';
import type { Svid, Workload } from './identity.ts';
import { readPrivateKey, splitCertificates } from './pem.ts';
import { parseSpiffeId, readSvid } from './svid.ts';

const METHOD = '/SpiffeWorkloadAPI/FetchX509SVID';
const FIRST_SVID_TIMEOUT_MS = 30_000;
const BACKOFF_FIRST_MS = 100;
const BACKOFF_LAST_MS = 10_000;

export interface OpenOptions {
  readonly socket: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly firstSvidTimeoutMs?: number;
}

/** Implements connectWorkload of workload.ts. */
export async function openWorkload(options: OpenOptions): Promise<Workload> {
  const stream = new SvidStream(options);
  const timeoutMs = options.firstSvidTimeoutMs ?? FIRST_SVID_TIMEOUT_MS;
  const { promise: late, resolve: giveUp } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => giveUp(undefined), timeoutMs);
  const first = await Promise.race([stream.first, late]);
  clearTimeout(timer);
  if (first === undefined) {
    stream.stop();
    throw new AppError(
      'unavailable',
      'WORKLOAD_IDENTITY_MISSING',
      `no X.509-SVID from the Workload API at ${options.socket} within ${timeoutMs} ms (${stream.lastProblem})`,
    );
  }
  const { id, trustDomain } = parseSpiffeId(first.id);
  return {
    id,
    trustDomain,
    current: () => stream.current(),
    onRotate: (callback) => stream.onRotate(callback),
    stop: () => stream.stop(),
  };
}

class SvidStream {
  readonly first: Promise<Svid>;
  lastProblem = 'no answer';
  readonly #options: OpenOptions;
  readonly #client: Client;
  readonly #callbacks = new Set<() => void>();
  readonly #arrived = Promise.withResolvers<Svid>();
  #svid: Svid | undefined;
  #call: ClientReadableStream<X509SVIDResponse> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = BACKOFF_FIRST_MS;
  #stopped = false;

  constructor(options: OpenOptions) {
    this.#options = options;
    this.first = this.#arrived.promise;
    this.#client = new Client(
      `unix:${options.socket.replace(/^unix:(\/\/)?/, '')}`,
      credentials.createInsecure(),
      {
        'grpc.enable_http_proxy': 0,
        'grpc.service_config_disable_resolution': 1,
        'grpc.use_local_subchannel_pool': 1,
        'grpc.initial_reconnect_backoff_ms': BACKOFF_FIRST_MS,
        'grpc.max_reconnect_backoff_ms': BACKOFF_LAST_MS,
        // the default authority would be the percent-encoded path, which strict servers refuse
        'grpc.default_authority': 'localhost',
      },
    );
    this.#open();
  }

  current(): Svid {
    if (this.#svid === undefined) {
      throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'this process has no X.509-SVID');
    }
    return this.#svid;
  }

  onRotate(callback: () => void): () => void {
    this.#callbacks.add(callback);
    return () => {
      this.#callbacks.delete(callback);
    };
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#call?.cancel();
    this.#callbacks.clear();
    this.#client.close();
  }

  #open(): void {
    const metadata = new Metadata();
    metadata.set('workload.spiffe.io', 'true');
    const call = this.#client.makeServerStreamRequest(
      METHOD,
      (request: Uint8Array) => Buffer.from(request),
      (bytes: Buffer) => fromBinary(X509SVIDResponseSchema, bytes),
      toBinary(X509SVIDRequestSchema, create(X509SVIDRequestSchema)),
      metadata,
    );
    this.#call = call;
    const again = Promise.withResolvers<void>();
    call.on('data', (response: X509SVIDResponse) => this.#accept(response));
    call.on('error', (error: ServiceError) => {
      this.#note(error);
      again.resolve();
    });
    call.on('end', () => again.resolve());
    again.promise.then(() => this.#reopenLater()).catch(() => undefined);
  }

  #note(error: ServiceError): void {
    if (this.#stopped) return;
    this.lastProblem = `${status[error.code] ?? error.code}: ${error.details}`;
    const level = error.code === status.PERMISSION_DENIED || this.#svid === undefined ? 'info' : 'warn';
    this.#options.log[level]({ reason: this.lastProblem }, 'workload api stream ended');
  }

  #reopenLater(): void {
    if (this.#stopped) return;
    // half of the pause is random, so that a fleet does not come back in step
    const pauseMs = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, BACKOFF_LAST_MS);
    this.#timer = setTimeout(() => this.#open(), pauseMs);
  }

  #accept(response: X509SVIDResponse): void {
    try {
      this.#svid = svidOf(response, this.#svid);
    } catch (error) {
      this.lastProblem = error instanceof Error ? error.message : 'unreadable SVID';
      this.#options.log.error(
        { err: error },
        'workload api sent an SVID that cannot be used; the last one stays',
      );
      return;
    }
    this.#pauseMs = BACKOFF_FIRST_MS;
    const { id, expiresAtMs } = this.#svid;
    this.#options.log.debug(
      { spiffeId: id, expiresAt: new Date(expiresAtMs).toISOString() },
      'workload identity',
    );
    this.#arrived.resolve(this.#svid);
    for (const callback of this.#callbacks) this.#tell(callback);
  }

  #tell(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#options.log.error({ err: error }, 'rotation callback failed');
    }
  }
}

/** The first SVID is the default one; a process that has an identity never changes it while it runs. */
function svidOf(response: X509SVIDResponse, before: Svid | undefined): Svid {
  const chosen =
    before === undefined ? response.svids[0] : response.svids.find((svid) => svid.spiffeId === before.id);
  if (chosen === undefined) throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'no SVID of ours');
  const chain = splitCertificates(chosen.x509Svid);
  const [leaf] = chain;
  if (leaf === undefined) throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'an empty chain');
  const facts = readSvid(leaf);
  if (facts.id !== chosen.spiffeId) {
    throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'the SVID names another identity');
  }
  const key = readPrivateKey(chosen.x509SvidKey);
  const certificate = new X509Certificate(leaf);
  if (!createPublicKey(key).equals(certificate.publicKey)) {
    throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'the key is not the certificate’s');
  }
  return {
    id: facts.id,
    key: key.export({ format: 'pem', type: 'pkcs8' }).toString(),
    cert: chain.map((der) => new X509Certificate(der).toString()).join(''),
    ca: splitCertificates(chosen.bundle)
      .map((der) => new X509Certificate(der).toString())
      .join(''),
    expiresAtMs: facts.expiresAtMs,
  };
}
