import { DOCKET_SIGNING } from '#core/crypto/derivation-context.ts';
import { apiTimestamp, formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { registerCreated } from '#core/events/register-events.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { type ControlRecord, defaultCryptoPolicy } from '#core/ledger/control-record.ts';
import type { RosterAttestation } from '#core/ledger/owner-attestation.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Database, isUniqueViolation, type Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import type { Wallets } from '../../clients/wallets.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Possessed } from '../directory/default-set.ts';
import { buildGenesis } from '../genesis/genesis.ts';
import { insertGenesisWork } from '../genesis/store.ts';
import { subscribe } from '../subscriptions/store.ts';
import type { Draft } from './draft.ts';
import type { Begun } from './schemas.ts';
import { insertRegister } from './store.ts';

export interface BeginDeps {
  readonly database: Database<RegisterSchema>;
  readonly wallets: Pick<Wallets, 'systemKey'>;
  readonly clock: Clock;
  readonly networkId: string;
  /** Called when genesis work was committed. */
  readonly onCreated: () => void;
}

/** The content of a new register. */
interface Beginning {
  readonly draft: Draft;
  readonly organizationId: string;
  readonly roster: readonly RosterAttestation[];
  readonly validators: readonly Possessed[];
}

function recordOf(
  draft: Draft,
  facts: {
    readonly createdAt: string;
    readonly roster: readonly RosterAttestation[];
    readonly validators: readonly Possessed[];
  },
): ControlRecord {
  const policy = parsePolicy(JSON.parse(draft.policyText));
  return {
    registerId: draft.registerId,
    name: draft.title,
    description: draft.description,
    purpose: draft.purpose,
    createdAt: facts.createdAt,
    attestations: facts.roster,
    cryptoPolicy: defaultCryptoPolicy(facts.createdAt, draft.devMode),
    registerPolicy: policy,
    validators: {
      validators: facts.validators.map((member) => ({
        validatorId: member.validatorId,
        publicKey: member.publicKey,
        algorithm: member.algorithm,
        derivationContext: DOCKET_SIGNING,
        status: 'Active',
        authorizedAt: facts.createdAt,
        proofOfPossession: member.proofOfPossession,
      })),
      requiredSignatures: quorum(facts.validators.length, policy.consensus.signatureThresholdMin),
      version: 1,
    },
    metadata: draft.metadata,
  };
}

/**
 * Writes register, control projection and genesis work in one commit.
 *
 * @param close deletes the pending draft or registration in that commit; false when another call did: then nothing is
 * written.
 * @returns undefined when another call began it.
 * @throws AppError conflict REGISTER_EXISTS
 */
export async function beginRegister(
  deps: BeginDeps,
  beginning: Beginning,
  close: (tx: Transactor<RegisterSchema>, answer: Begun) => Promise<boolean>,
): Promise<Begun | undefined> {
  const { draft, organizationId, roster, validators } = beginning;
  const systemKey = await deps.wallets.systemKey();
  const createdAt = formatLedgerTimestamp(deps.clock.nowMicros());
  const record = recordOf(draft, { createdAt, roster, validators });
  const genesis = buildGenesis({ record, organizationId, systemKey });
  const at = new Date(deps.clock.nowMs());
  const answer = {
    registerId: draft.registerId,
    id: draft.registerId,
    status: 'created',
    genesisTransactionId: genesis.txId,
    genesisDocketId: '0',
    createdAt: apiTimestamp(at.getTime()),
  } as const;
  const { attestations: _requested, ...facts } = draft;
  const register = {
    ...facts,
    networkId: deps.networkId,
    policyVersion: record.registerPolicy.version,
    organizationId,
    genesisTransactionId: genesis.txId,
    systemKey: genesis.systemKey,
    createdAt: at,
  };
  try {
    const begun = await deps.database.transact(async (tx) => {
      if (!(await close(tx, answer))) return undefined;
      const control = { members: record.validators.validators, roster: record.attestations };
      const registerNo = await insertRegister(tx, register, control);
      await insertGenesisWork(tx, registerNo, genesis);
      await subscribe(tx, { organizationId, registerNo, kind: 'Owner', at });
      const organizationIds = [organizationId];
      await appendEvent(
        tx,
        registerCreated({ registerId: draft.registerId, organizationIds, traceId: currentTraceId() }),
      );
      return answer;
    });
    if (begun !== undefined) deps.onCreated();
    return begun;
  } catch (error) {
    if (isUniqueViolation(error, 'registers_register_id_key'))
      throw refusal('REGISTER_EXISTS', { cause: error });
    throw error;
  }
}
