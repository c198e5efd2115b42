import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import type { Logger } from '#kit/log/log.ts';
import {
  X509SVIDRequestSchema,
  type X509SVIDResponse,
  X509SVIDResponseSchema,
} from '#protos/gen/workloadapi_pb.js';
import { Backoff } from './backoff.ts';
import type { Svid } from './identity.ts';
import { readPrivateKey, splitCertificates } from './pem.ts';
import { identityMissing, judgeReceived, type SvidHolder } from './svid-holder.ts';

const METHOD = '/SpiffeWorkloadAPI/FetchX509SVID';

/** The stream of the SPIFFE Workload API: full snapshots, reopened without limit. */
export class WorkloadApiStream {
  readonly #holder: SvidHolder;
  readonly #log: Logger;
  readonly #client: Client;
  readonly #backoff = new Backoff();
  #call: ClientReadableStream<X509SVIDResponse> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(socket: string, holder: SvidHolder, log: Logger) {
    this.#holder = holder;
    this.#log = log;
    this.#client = new Client(`unix:${socket.replace(/^unix:(\/\/)?/, '')}`, credentials.createInsecure(), {
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 10_000,
      // The default authority would be the percent-encoded path, which strict servers refuse.
      'grpc.default_authority': 'localhost',
    });
    this.#open();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#call?.cancel();
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
    this.#holder.lastProblem = `${status[error.code] ?? error.code}: ${error.details}`;
    const isExpected = error.code === status.PERMISSION_DENIED || this.#holder.find() === undefined;
    const reason = this.#holder.lastProblem;
    this.#log[isExpected ? 'info' : 'warn']({ reason }, 'workload api stream ended');
  }

  #reopenLater(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => this.#open(), this.#backoff.next());
  }

  #accept(response: X509SVIDResponse): void {
    try {
      this.#holder.accept(svidOf(response, this.#holder.find()));
      this.#backoff.reset();
    } catch (error) {
      this.#holder.lastProblem = error instanceof Error ? error.message : 'unreadable SVID';
      this.#log.error({ err: error }, 'workload api sent an SVID that cannot be used; the last one stays');
    }
  }
}

/** The first SVID is the default one; later, the one of the same id is used. */
function svidOf(response: X509SVIDResponse, before: Svid | undefined): Svid {
  const chosen =
    before === undefined ? response.svids[0] : response.svids.find((svid) => svid.spiffeId === before.id);
  if (chosen === undefined) throw identityMissing('no SVID of ours');
  return judgeReceived({
    id: chosen.spiffeId,
    chain: splitCertificates(chosen.x509Svid),
    key: readPrivateKey(chosen.x509SvidKey),
    bundle: splitCertificates(chosen.bundle),
  });
}
