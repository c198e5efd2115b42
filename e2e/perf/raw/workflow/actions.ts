import { hash, randomBytes, randomUUID } from 'node:crypto';
import type { JudgePayload } from '#core/blueprint/schemas/compile.ts';
import { encrypt, openGroup, type RawGroup, sealGroup, wrappedFor } from './groups.ts';
import { actionOf, type Data, type Role } from './site-permit.ts';
import type { RawStore, SealedStep } from './store.ts';

/** Requests to the other raw programs, each over mutual TLS. */
export interface RawPeers {
  askWallet<T>(request: object): Promise<T>;
  /** A delegated token of an hour. */
  delegate(): Promise<string>;
  /** Submits a transaction to the store; resolves once it is stored. */
  submit(transaction: string): Promise<void>;
  /** Payloads of stored transactions, in their order. */
  readPayloads(txIds: readonly string[]): Promise<readonly RawPayload[]>;
}

interface RawPayload {
  readonly data?: Data;
  readonly groups?: readonly RawGroup[];
}

/** What a client requests. */
export interface RawStep {
  readonly instanceId: string;
  readonly actionId: number;
  readonly isRejection?: boolean;
  readonly payload: Data;
}

interface OwnedWallet {
  readonly name: Role;
  readonly public_key: string;
}

interface RawActionsOptions {
  readonly store: RawStore;
  readonly peers: RawPeers;
  readonly judges: readonly JudgePayload[];
  readonly isEncrypted: boolean;
  /** Called for each folded step. */
  readonly folded: (step: SealedStep) => void;
}

const registerId = 'f'.repeat(32);
const pin = '0'.repeat(64);
const hexOf = (text: string): string => hash('sha256', text);

/** A step with everything that follows from it. */
interface Evaluated {
  readonly step: RawStep;
  readonly sender: OwnedWallet;
  readonly seq: number;
  readonly previous: string;
  readonly next: number | undefined;
  readonly data: Data;
  readonly views: readonly { readonly readers: readonly string[]; readonly data: Data }[];
}

/**
 * The minimum of carrying out a step, with the product's guarantees: the operation is committed with its input and
 * delegation, the transaction with all its randomness before it is signed, the signed bytes before they are sent; one
 * commit folds the sealed steps that wait and completes their operations.
 */
export class RawActions {
  readonly #options: RawActionsOptions;
  readonly #operationsKey = randomBytes(32);
  #sealed: {
    readonly step: SealedStep;
    readonly done: () => void;
    readonly fail: (error: unknown) => void;
  }[] = [];
  #isFolding = false;

  constructor(options: RawActionsOptions) {
    this.#options = options;
  }

  async start(ids: readonly string[]): Promise<void> {
    await this.#options.store.insertInstances(ids, pin);
  }

  /** Resolves once the step is folded. */
  async take(token: string, step: RawStep): Promise<void> {
    const { peers, store } = this.#options;
    const [instance, [sender]] = await Promise.all([
      store.findInstance(step.instanceId),
      peers.askWallet<readonly OwnedWallet[]>({ ask: 'owned', token }),
    ]);
    const rule = actionOf(step.actionId);
    if (instance?.current !== step.actionId || sender?.name !== rule.sender)
      throw new Error(`action ${step.actionId} cannot be taken`);
    const delegation = await peers.delegate();
    if (step.isRejection !== true) await this.#readPrior(step, rule.prior, [sender.name, delegation]);
    const turn = { step, sender, seq: instance.seq + 1, previous: instance.last_tx };
    const evaluated = { ...turn, ...this.#evaluate(step) };
    await this.#carryOut(evaluated, delegation);
  }

  #evaluate(step: RawStep): Pick<Evaluated, 'data' | 'next' | 'views'> {
    const { sender, rejection, ...rule } = actionOf(step.actionId);
    const { payload } = step;
    if (step.isRejection === true) {
      if (rejection === undefined) throw new Error(`action ${step.actionId} cannot be rejected`);
      return { data: payload, next: rejection.next, views: [{ readers: rejection.readers, data: payload }] };
    }
    const errors = this.#options.judges[step.actionId]?.(payload) ?? [];
    if (errors.length > 0) throw new Error(`the payload of ${sender} violates the schema`);
    const data = { ...payload, ...rule.calculate(payload) };
    return { data, next: rule.next(data), views: rule.views(data) };
  }

  /** The data of the last steps of earlier actions, as the sender reads it. */
  async #readPrior(
    { instanceId }: RawStep,
    prior: readonly number[],
    [wallet, delegation]: readonly [wallet: string, delegation: string],
  ): Promise<void> {
    if (prior.length === 0) return;
    const steps = await this.#options.store.listSteps(instanceId);
    const last = prior.flatMap(
      (id) => steps.findLast(({ action_id, is_rejection }) => action_id === id && !is_rejection)?.tx_id ?? [],
    );
    await this.#open(last, wallet, delegation);
  }

  /** What a wallet reads of every step of an instance. */
  async disclose(token: string, instanceId: string): Promise<readonly object[]> {
    const { peers, store } = this.#options;
    const [steps, [wallet]] = await Promise.all([
      store.listSteps(instanceId),
      peers.askWallet<readonly OwnedWallet[]>({ ask: 'owned', token }),
    ]);
    const txIds = steps.map(({ tx_id }) => tx_id);
    return this.#open(txIds, wallet?.name ?? '', await peers.delegate());
  }

  /** Unwraps one content key a step and opens its group; payloads in clear are returned as they are. */
  async #open(txIds: readonly string[], wallet: string, token: string): Promise<readonly object[]> {
    const { peers } = this.#options;
    const payloads = await peers.readPayloads(txIds);
    const wrapped = payloads.flatMap(({ groups = [] }) =>
      groups.flatMap((group) => {
        const key = wrappedFor(group, wallet);
        return key === undefined
          ? []
          : [{ group, x: key.x, encryptedKey: key.encryptedKey.toString('base64url') }];
      }),
    );
    if (wrapped.length === 0) return payloads.flatMap(({ data }) => (data === undefined ? [] : [data]));
    const keys = wrapped.map(({ x, encryptedKey }) => ({ x, encryptedKey }));
    const opened = await peers.askWallet<readonly string[]>({ ask: 'unwrap', token, wallet, keys });
    return wrapped.map(({ group }, n) => openGroup(group, Buffer.from(opened[n] ?? '', 'base64url')));
  }

  async #carryOut(evaluated: Evaluated, delegation: string): Promise<void> {
    const { store, peers } = this.#options;
    const { step, sender } = evaluated;
    const keys = await this.#keysOf(evaluated);
    const operationId = randomUUID();
    const seal = (value: unknown) =>
      encrypt(this.#operationsKey, Buffer.from(JSON.stringify(value)), operationId);
    await store.insertOperation(operationId, step.instanceId, [seal(step.payload), seal(delegation)]);
    const draft = this.#draft(evaluated, keys);
    await store.saveDraft(operationId, seal(draft));
    const digest = hexOf(`${draft.TransactionId}:${draft.PayloadHash}`);
    const request = { ask: 'sign', token: delegation, wallet: sender.name, digest };
    const signature = await peers.askWallet<string>(request);
    const signatures = [{ PublicKey: sender.public_key, SignatureValue: signature, Algorithm: 'ED25519' }];
    const submission = JSON.stringify({ ...draft, Signatures: signatures });
    await store.saveSubmission(operationId, submission, draft.TransactionId);
    await peers.submit(submission);
    const { seq, next = null } = evaluated;
    await this.#fold({
      operationId,
      seq,
      next,
      instanceId: step.instanceId,
      actionId: step.actionId,
      isRejection: step.isRejection === true,
      sender: sender.name,
      txId: draft.TransactionId,
      routing: draft.Metadata.routing,
    });
  }

  async #keysOf({ views }: Evaluated): Promise<ReadonlyMap<string, string>> {
    if (!this.#options.isEncrypted) return new Map();
    const wallets = [...new Set(views.flatMap(({ readers }) => readers))];
    const request = { ask: 'keys', wallets };
    const found = await this.#options.peers.askWallet<readonly { name: string; x: string }[]>(request);
    return new Map(found.map(({ name, x }) => [name, x]));
  }

  #draft({ step, sender, seq, previous, next, data, views }: Evaluated, keys: ReadonlyMap<string, string>) {
    const { instanceId, actionId } = step;
    const owner = { v: 1, instanceId, actionId: String(actionId), blueprintDefinitionTxId: pin };
    const seal = (view: Evaluated['views'][number]) => {
      const recipients = view.readers.map((reader) => [reader, keys.get(reader) ?? ''] as const);
      return sealGroup([registerId, instanceId, actionId].join('|'), view.data, recipients);
    };
    const payload = this.#options.isEncrypted ? { ...owner, groups: views.map(seal) } : { ...owner, data };
    const state = {
      v: 1,
      instanceId,
      seq,
      completedActionId: actionId,
      current: next === undefined ? [] : [next],
    };
    const envelope = {
      RegisterId: registerId,
      ActionId: String(actionId),
      PreviousTransactionId: previous,
      PayloadHash: hexOf(JSON.stringify(payload)),
      CreatedAt: new Date().toISOString(),
      Sender: sender.name,
      Metadata: { instanceId, routing: JSON.stringify(state) },
    };
    return { TransactionId: hexOf(JSON.stringify(envelope)), ...envelope, Payload: payload };
  }

  /** Folds together what was sealed while the steps before were folded. */
  async #fold(step: SealedStep): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#sealed.push({ step, done: resolve, fail: reject });
    if (!this.#isFolding) void this.#foldAll();
    await promise;
    this.#options.folded(step);
  }

  async #foldAll(): Promise<void> {
    this.#isFolding = true;
    while (this.#sealed.length > 0) {
      const batch = this.#sealed;
      this.#sealed = [];
      try {
        await this.#options.store.fold(batch.map(({ step }) => step));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { fail } of batch) fail(error);
      }
    }
    this.#isFolding = false;
  }
}
