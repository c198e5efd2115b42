import type { MessageInitShape } from '@bufbuild/protobuf';
import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import type { ConsensusMessage } from '#core/ledger/consensus.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RpcClient, RpcStream } from '#kit/rpc/rpc.ts';
import type {
  SignConsensusRequest,
  SignConsensusRequestSchema,
  SignConsensusResponse,
  SystemSignerService,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type {
  AttestationRequest,
  BatchSignatures,
  KeyChain,
  Signer,
  SignerBatch,
  SignerKey,
  SignerRequest,
} from '../../chain/sealing/ports.ts';
import { failure } from '../../errors.ts';

type Wallet = Pick<RpcClient<typeof SystemSignerService.method>, 'signConsensus'>;
type RequestInit = MessageInitShape<typeof SignConsensusRequestSchema>;
type Result = SignConsensusResponse['result'];
type Stream = RpcStream<RequestInit, SignConsensusResponse>;

interface SignerOptions {
  readonly wallet: Wallet;
  readonly validatorId: string;
  readonly log: Logger;
  /** Another holder of this identity has taken over; this process signs nothing more. */
  onFenced(error: AppError): void;
}

interface PendingRequest {
  readonly request: Pick<RequestInit, 'message' | 'publicKey'>;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: Error) => void;
}

const reconnectMs = { first: 100, last: 5000 } as const;

const refusalKinds: Readonly<Record<string, ErrorKind>> = {
  DOUBLE_SIGN_REFUSED: 'conflict',
  SIGNER_FENCED: 'forbidden',
  SIGNING_NOT_ALLOWED: 'forbidden',
  SIGNING_KEY_UNKNOWN: 'not_found',
  SIGNING_KEYS_EXHAUSTED: 'conflict',
  INVALID_REQUEST: 'invalid',
  RATE_LIMITED: 'rate_limited',
};

/**
 * The stream to the signing component. Opening it acquires the next fencing epoch; then requests are sent one by one. A broken
 * stream is reopened under the same epoch, so that a process that was partitioned does not fence its successor. Pending
 * requests are sent again; the component answers the same request with the same signature.
 */
export class SignerStream implements Signer, KeyChain {
  readonly #options: SignerOptions;
  readonly #waiting = new Map<bigint, PendingRequest>();
  readonly #opened = Promise.withResolvers<SignerKey>();
  #key: SignerKey | undefined;
  #newestKey: SignerKey | undefined;
  #signsBatches = false;
  /** 0 until the first stream has acquired an epoch. */
  #epoch = 0n;
  #stream: Stream | undefined;
  #nextId = 1n;
  #ended: AppError | undefined;
  #fenced: AppError | undefined;
  #delayMs: number = reconnectMs.first;
  #wakeRetry: (() => void) | undefined;

  constructor(options: SignerOptions) {
    this.#options = options;
    this.#opened.promise.catch(() => {});
  }

  get key(): SignerKey {
    if (this.#key === undefined)
      throw failure('SIGNER_UNAVAILABLE', { message: 'The stream to the signing component is not open yet' });
    return this.#key;
  }

  /** Throws while nothing can be signed. */
  assertOpen(): void {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.#stream === undefined) {
      throw failure('SIGNER_UNAVAILABLE');
    }
  }

  /** Throws once another holder has taken over the identity: only a new process can acquire it again. */
  assertHeld(): void {
    if (this.#fenced !== undefined) throw this.#fenced;
  }

  /** Opens the stream and keeps it open; resolves with the key after the first opening. Rejects when this process is fenced. */
  start(): Promise<SignerKey> {
    void this.#keepOpen();
    return this.#opened.promise;
  }

  get newestKey(): SignerKey {
    return this.#newestKey ?? this.key;
  }

  async sign(request: SignerRequest, publicKey = ''): Promise<Uint8Array> {
    const result = await this.#request({ publicKey, message: wireMessage(request) });
    if (result.case !== 'signed') throw unexpected();
    return result.value.signature;
  }

  get signsBatches(): boolean {
    return this.#signsBatches;
  }

  async signBatch({ messages, attestation }: SignerBatch, publicKey = ''): Promise<BatchSignatures> {
    const value = {
      messages: messages.map(wireConsensus),
      ...(attestation !== undefined && { attestation: wireAttestation(attestation) }),
    };
    const result = await this.#request({ publicKey, message: { case: 'batch', value } });
    if (result.case !== 'batch') throw unexpected();
    const { signatures, attestationSignature } = result.value;
    const isComplete =
      signatures.length === messages.length &&
      (attestation === undefined) === (attestationSignature.length === 0);
    if (!isComplete) throw unexpected();
    return { messages: signatures, ...(attestation !== undefined && { attestation: attestationSignature }) };
  }

  async nextKey(after: string): Promise<SignerKey> {
    const value = { afterPublicKey: after };
    const result = await this.#request({ message: { case: 'nextKey', value } });
    if (result.case !== 'key') throw unexpected();
    const { publicKey, walletAddress } = result.value;
    const key = { publicKey, walletAddress };
    if (after === this.newestKey.publicKey) this.#newestKey = key;
    return key;
  }

  #request(request: PendingRequest['request']): Promise<Result> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const id = this.#nextId;
      this.#nextId += 1n;
      const waiting = { request, resolve, reject };
      this.#waiting.set(id, waiting);
      this.#ask(id, waiting);
    });
  }

  stop(): void {
    this.#end(stopped());
    this.#stream?.close();
    this.#stream?.cancel();
    this.#stream = undefined;
    this.#wakeRetry?.();
  }

  #end(error: AppError): void {
    this.#ended ??= error;
    this.#opened.reject(error);
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }

  #ask(requestId: bigint, { request }: PendingRequest): void {
    // A failed send ends the stream; pending requests are sent again on the next one.
    this.#stream?.send({ requestId, ...request }).catch(() => {});
  }

  async #keepOpen(): Promise<void> {
    while (this.#ended === undefined) {
      try {
        await this.#follow();
      } catch (error) {
        if (this.#ended === undefined)
          this.#options.log.warn(
            { err: error, retryInMs: this.#delayMs },
            'the stream to the signing component was lost; it is reopened',
          );
      }
      this.#stream = undefined;
      if (this.#ended === undefined) await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakeRetry = resolve;
    const timer = setTimeout(resolve, this.#delayMs);
    await promise;
    clearTimeout(timer);
    this.#delayMs = Math.min(this.#delayMs * 2, reconnectMs.last);
  }

  async #follow(): Promise<void> {
    const { wallet, validatorId } = this.#options;
    const stream: Stream = await wallet.signConsensus.open();
    if (this.#ended !== undefined) {
      stream.cancel();
      return;
    }
    const value = { validatorId, epoch: this.#epoch };
    await stream.send({ requestId: 0n, message: { case: 'open', value } });
    for await (const response of stream.responses) this.#take(stream, response);
  }

  #take(stream: Stream, { requestId, result }: SignConsensusResponse): void {
    if (result.case === 'opened') {
      const { epoch, key, newestKey, signsBatches } = result.value;
      this.#epoch = epoch;
      this.#signsBatches = signsBatches;
      this.#onOpened(stream, key, newestKey ?? key);
      return;
    }
    if (result.case === 'refusal') {
      this.#onRefusal(requestId, result.value.code, result.value.message);
      return;
    }
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    waiting?.resolve(result);
  }

  #onOpened(stream: Stream, key: SignerKey | undefined, newest: SignerKey | undefined): void {
    if (key === undefined || newest === undefined) return;
    const { publicKey, walletAddress } = key;
    if (this.#key !== undefined && this.#key.publicKey !== publicKey) {
      this.#fence(failure('SIGNER_FENCED'));
      return;
    }
    this.#key = { publicKey, walletAddress };
    this.#newestKey = { publicKey: newest.publicKey, walletAddress: newest.walletAddress };
    this.#stream = stream;
    this.#delayMs = reconnectMs.first;
    this.#opened.resolve(this.#key);
    for (const [id, waiting] of this.#waiting) this.#ask(id, waiting);
  }

  #onRefusal(requestId: bigint, code: string, message: string): void {
    const error = new AppError(refusalKinds[code] ?? 'unavailable', code, message);
    if (code === 'SIGNER_FENCED' || requestId === 0n) {
      this.#fence(error);
      return;
    }
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    waiting?.reject(error);
  }

  #fence(error: AppError): void {
    this.#fenced = error;
    this.#end(error);
    this.#stream?.cancel();
    this.#options.onFenced(error);
  }
}

function unexpected(): AppError {
  return failure('SIGNER_UNAVAILABLE', { message: 'The signing component returned an unexpected answer' });
}

function stopped(): AppError {
  return failure('SIGNER_UNAVAILABLE', { message: 'The validator is stopping' });
}

function wireMessage(
  request: SignerRequest,
): NonNullable<SignConsensusRequest['message']> | NonNullable<RequestInit['message']> {
  switch (request.kind) {
    case 'possession':
      return { case: 'possession', value: { registerId: request.registerId } };
    case 'suspension': {
      const { registerId, payload } = request;
      return { case: 'suspension', value: { registerId, payload } };
    }
    case 'cosignature': {
      const { networkId, registerId, rootHash } = request;
      const size = BigInt(request.size);
      const timeSeconds = BigInt(request.timeSeconds);
      return { case: 'cosignature', value: { networkId, registerId, size, rootHash, timeSeconds } };
    }
    case 'attestation':
      return { case: 'attestation', value: wireAttestation(request) };
    case 'consensus':
      return { case: 'consensus', value: wireConsensus(request.message) };
  }
}

function wireAttestation({ registerId, docketHash, approved, timestamp }: AttestationRequest) {
  return { registerId, docketHash, approved, timestamp };
}

function wireConsensus({ docket, height, ...message }: ConsensusMessage) {
  return {
    type: message.type,
    networkId: message.networkId,
    registerId: message.registerId,
    height: BigInt(height),
    round: message.round,
    polRound: message.polRound,
    docketHash: docket?.docketHash ?? '',
    merkleRoot: docket?.merkleRoot ?? '',
    logRoot: docket?.logRoot ?? '',
    validatorSetHash: message.validatorSetHash,
    timestamp: message.timestamp,
  };
}
