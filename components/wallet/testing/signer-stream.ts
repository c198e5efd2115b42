import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type SignConsensusRequest,
  SignConsensusRequestSchema,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { serveSigner } from '../system-signer/stream.ts';
import { type Replica, rpcContext } from './fixture.ts';

export type Message = MessageInitShape<typeof SignConsensusRequestSchema>['message'];
export type Wire = Extract<NonNullable<Message>, { case: 'consensus' }>['value'];
export type Answer = {
  case?: string | undefined;
  value?: {
    code?: string;
    signature?: Uint8Array;
    signatures?: Uint8Array[];
    attestationSignature?: Uint8Array;
    signsBatches?: boolean;
    epoch?: bigint;
    publicKey?: string;
    newestKey?: { publicKey: string };
  };
};

/** The client side of one stream: sends a message and waits for its answer. */
export class SignerStream {
  readonly #queue: SignConsensusRequest[] = [];
  readonly #waiting = new Map<bigint, (answer: Answer) => void>();
  #wake: (() => void) | undefined;
  #closed = false;
  #next = 1n;
  readonly done: Promise<void>;

  constructor(replica: Replica, clientId: string, canSignSystem = true) {
    const context = rpcContext(clientId, { canSignSystem });
    const caller = {
      spiffeId: context.peer.spiffeId,
      clientId,
      subject: context.caller?.subject ?? '',
      service: true,
      canSignSystem,
    };
    this.done = this.#read(serveSigner(replica.deps, caller, this.#requests()));
  }

  /** @param publicKey a key of the identity; the first key when absent */
  send(message: Message, publicKey = ''): Promise<Answer> {
    const requestId = this.#next;
    this.#next += 1n;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#waiting.set(requestId, resolve);
    this.#queue.push(
      create(SignConsensusRequestSchema, { requestId, publicKey, message: message ?? { case: undefined } }),
    );
    this.#wake?.();
    return promise;
  }

  /** @param epoch taken by an earlier stream; 0n for a validator that starts */
  open(validatorId: string, epoch = 0n): Promise<Answer> {
    return this.send({ case: 'open', value: { validatorId, epoch } });
  }

  vote(value: Wire): Promise<Answer> {
    return this.send({ case: 'consensus', value });
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#wake?.();
    return this.done;
  }

  async *#requests(): AsyncGenerator<SignConsensusRequest, void, undefined> {
    for (;;) {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield next;
      if (this.#closed) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }

  async #read(answers: ReturnType<typeof serveSigner>): Promise<void> {
    for await (const { requestId, result } of answers) {
      this.#waiting.get(BigInt(requestId ?? 0))?.(result as Answer);
    }
    this.#closed = true;
    this.#wake?.();
  }
}
