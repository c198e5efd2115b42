import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import { buildOperation, governanceDraft } from '#core/ledger/governance/build.ts';
import type { Operation } from '#core/ledger/governance/operation.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import type { Random } from '#kit/testing/random.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import type { TestKey } from '../keys.ts';
import { type SignedSubmission, signedSubmission } from '../submissions.ts';
import type { Change } from './fault-model.ts';

export interface GovernorOptions {
  readonly owner: TestKey;
  readonly random: Random;
  /** Every validator that may ever be a member. */
  readonly candidates: readonly { readonly id: string; readonly key: TestKey }[];
  /** Validators that should be removed or added first. */
  readonly preferences: ReadonlyMap<string, 'in' | 'out'>;
  /** Minimum size of the set. */
  readonly fewest: number;
  nowMs(): number;
  /** Whether the change keeps the fault bound of every set. */
  mayChange(change: Change): boolean;
}

export interface Proposed {
  readonly signed: SignedSubmission;
  /** The change of the set; undefined for a policy change. */
  readonly change: Change | undefined;
  readonly what: string;
}

/** The owner of the register: changes its validators and its policy through the ledger. */
export class Governor {
  readonly #options: GovernorOptions;

  constructor(options: GovernorOptions) {
    this.#options = options;
  }

  /** A sensible change of a state; undefined when none was found. */
  change(state: RegisterState): Proposed | undefined {
    const { owner, nowMs } = this.#options;
    const timestamp = formatLedgerTimestamp(BigInt(nowMs()) * 1000n);
    const { drawn, change } = this.#draw(state);
    if (change !== undefined && !this.#options.mayChange(change)) return undefined;
    const common = { proposerDid: memberDid(owner.address), proposedAt: timestamp };
    const operation: Operation = { ...drawn, ...common };
    try {
      const context = { docketNumber: state.height, timestamp, verifier: state.verifier };
      const payload = buildOperation(state.ledger, operation, context);
      const draft = governanceDraft(operation.operationType, payload);
      const { registerId } = state;
      const signed = signedSubmission({ ...draft, registerId, key: owner, createdAtMs: nowMs() });
      return { signed, change, what: [operation.operationType, change?.validatorId].join(' ') };
    } catch (error) {
      if (isAppError(error)) return undefined;
      throw error;
    }
  }

  #draw(state: RegisterState) {
    const { random, candidates, preferences, fewest } = this.#options;
    const members = new Set(state.members.map((member) => member.validatorId));
    const kind = this.#wish(members) ?? random.pick(['add', 'add', 'remove', 'remove', 'policy'] as const);
    const outside = candidates.filter(({ id }) => !members.has(id) && preferences.get(id) !== 'out');
    if (kind === 'add' && outside.length > 0) {
      const wanted = outside.filter(({ id }) => preferences.get(id) === 'in');
      const chosen = random.pick(wanted.length > 0 ? wanted : outside);
      return { drawn: this.#add(state, chosen), change: { kind, validatorId: chosen.id } as const };
    }
    if (kind === 'remove' && members.size > fewest) {
      const unwanted = [...members].filter((id) => preferences.get(id) === 'out');
      const validatorId = random.pick(unwanted.length > 0 ? unwanted : [...members]);
      const drawn = { operationType: 'remove-validator', validatorId } as const;
      return { drawn, change: { kind, validatorId } as const };
    }
    const { policy } = state.ledger;
    const consensus = { ...policy.consensus, docketBuildIntervalMs: random.whole(10, 1000) };
    const changed = { ...policy, consensus, version: policy.version + 1 };
    return { drawn: { operationType: 'policy-update', policy: changed } as const, change: undefined };
  }

  /** Half of the time, a preferred change that is not in effect yet. */
  #wish(members: ReadonlySet<string>): Change['kind'] | undefined {
    const { random, preferences } = this.#options;
    const open = [...preferences].find(([id, way]) => members.has(id) !== (way === 'in'));
    if (open === undefined || random.chance(0.5)) return undefined;
    return open[1] === 'in' ? 'add' : 'remove';
  }

  #add({ registerId }: RegisterState, { id, key }: { id: string; key: TestKey }) {
    const { publicKey } = key;
    const proof = key.sign(possessionBytes({ registerId, validatorId: id, publicKey }));
    const proofOfPossession = encodeBase64(proof);
    const validatorEntry = { validatorId: id, publicKey, algorithm: 'ED25519', proofOfPossession } as const;
    return { operationType: 'add-validator', validatorEntry } as const;
  }
}
