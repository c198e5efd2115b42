import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import { buildOperation, governanceDraft } from '#core/ledger/governance/build.ts';
import type { Operation } from '#core/ledger/governance/operation.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import type { RegisterState } from '../sealing/state.ts';
import type { TestKey } from '../testing/keys.ts';
import { type Signed, signedSubmission } from '../testing/submissions.ts';
import type { Random } from './random.ts';

export interface GovernorOptions {
  readonly owner: TestKey;
  readonly random: Random;
  /** Every validator that may ever be a member. */
  readonly candidates: readonly { readonly id: string; readonly key: TestKey }[];
  readonly fewest: number;
  nowMs(): number;
}

/** The owner of the register: changes the set of its validators and its policy through the ledger. */
export class Governor {
  readonly #options: GovernorOptions;

  constructor(options: GovernorOptions) {
    this.#options = options;
  }

  /** A change that makes sense against a state; undefined when none was found. */
  change(state: RegisterState): { readonly signed: Signed; readonly what: string } | undefined {
    const { owner, nowMs } = this.#options;
    const timestamp = formatLedgerTimestamp(BigInt(nowMs()) * 1000n);
    const drawn = this.#draw(state);
    if (drawn === undefined) return undefined;
    const common = { proposerDid: memberDid(owner.address), proposedAt: timestamp };
    const operation: Operation = { ...drawn, ...common };
    try {
      const context = { docketNumber: state.height, timestamp, verifier: state.verifier };
      const payload = buildOperation(state.ledger, operation, context);
      const draft = governanceDraft(operation.operationType, payload);
      const { registerId } = state;
      const signed = signedSubmission({ ...draft, registerId, key: owner, createdAtMs: nowMs() });
      return {
        signed,
        what: `${operation.operationType} ${'validatorId' in drawn ? drawn.validatorId : ''}`,
      };
    } catch (error) {
      if (isAppError(error)) return undefined;
      throw error;
    }
  }

  #draw(state: RegisterState) {
    const { random, candidates, fewest } = this.#options;
    const members = new Set(state.members.map((member) => member.validatorId));
    const kind = random.pick(['add', 'add', 'remove', 'remove', 'policy'] as const);
    const outside = candidates.filter(({ id }) => !members.has(id));
    if (kind === 'add' && outside.length > 0) return this.#add(state, random.pick(outside));
    if (kind === 'remove' && members.size > fewest) {
      return { operationType: 'remove-validator', validatorId: random.pick([...members]) } as const;
    }
    const { policy } = state.ledger;
    const consensus = { ...policy.consensus, docketBuildIntervalMs: random.whole(10, 1000) };
    const changed = { ...policy, consensus, version: policy.version + 1 };
    return { operationType: 'policy-update', policy: changed } as const;
  }

  #add({ registerId }: RegisterState, { id, key }: { id: string; key: TestKey }) {
    const { publicKey } = key;
    const proof = key.sign(possessionBytes({ registerId, validatorId: id, publicKey }));
    const proofOfPossession = encodeBase64(proof);
    const validatorEntry = { validatorId: id, publicKey, algorithm: 'ED25519', proofOfPossession } as const;
    return { operationType: 'add-validator', validatorEntry } as const;
  }
}
