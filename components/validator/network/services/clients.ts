import { setTimeout as pause } from 'node:timers/promises';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import { parseRules } from '#core/ledger/governance/rules-json.ts';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import {
  type GetRegisterStateResponse,
  type LedgerService,
  type ReadKeysResponse,
  type RecordService,
  WriteOutcome as WireOutcome,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import type { KeyPart } from '../../chain/keys/key-snapshot.ts';
import type { Ledger, RegisterFacts, SealedDocket, WriteOutcome } from '../../chain/sealing/ports.ts';
import { failure } from '../../errors.ts';

const lookupTimeoutMs = 5_000;
const retryAfterMs = 100;
const writeTimeoutMs = 30_000;
const stateTimeoutMs = 5_000;

const outcomes: Readonly<Record<WireOutcome, WriteOutcome | undefined>> = {
  [WireOutcome.UNSPECIFIED]: undefined,
  [WireOutcome.STORED]: 'stored',
  [WireOutcome.REPLAYED]: 'replayed',
  [WireOutcome.DIVERGENT]: 'divergent',
  [WireOutcome.OUT_OF_ORDER]: 'out-of-order',
  [WireOutcome.INVALID]: 'invalid',
};

/** Upper bound of registers in one request for subscriptions. */
const maxListed = 10_000;

/** The register service as all parts of a validator see it. */
interface RegisterService extends Ledger {
  /** Of some registers, those that an organisation subscribes to. */
  listSubscribed(organizationId: string, registerIds: readonly string[]): Promise<readonly string[]>;
}

/** The register service behind the port of sealing and admission. */
export function createLedger(
  client: RpcClient<typeof LedgerService.method>,
  records: Pick<RpcClient<typeof RecordService.method>, 'getSealedTransaction'>,
): RegisterService {
  return {
    async findTransaction(registerId, transactionId) {
      const request = { registerId, transactionId };
      try {
        const ask = () => records.getSealedTransaction(request, { timeoutMs: lookupTimeoutMs });
        return (await retryOnce(ask)).transaction;
      } catch (error) {
        if (isAppError(error, 'not_found')) return undefined;
        throw error;
      }
    },
    async lookup(items) {
      const ask = () => client.lookup({ items: [...items] }, { timeoutMs: lookupTimeoutMs });
      const { answers } = await retryOnce(ask);
      return answers;
    },
    async writeDocket(sealed, attestations) {
      const answer = await client.writeDocket(wireDocket(sealed, attestations), {
        timeoutMs: writeTimeoutMs,
      });
      const outcome = outcomes[answer.outcome];
      if (outcome === undefined)
        throw failure('BAD_GATEWAY', { message: 'The register service returned no write outcome' });
      const refusals = answer.refusals.map(({ code, message, field }) => `${code} ${field} ${message}`);
      return { outcome, height: Number(answer.height), refusals };
    },
    async appendAttestation(registerId, docketNumber, vote) {
      const attestation = wireAttestation(vote);
      const request = { registerId, docketNumber: BigInt(docketNumber), attestation };
      await client.appendAttestation(request, { timeoutMs: lookupTimeoutMs });
    },
    async findRegister(registerId) {
      const state = await client.getRegisterState({ registerId }, { timeoutMs: stateTimeoutMs });
      // a register has no rules before docket 0 is stored
      return state.found && state.rulesJson !== '' ? registerFacts(state) : undefined;
    },
    async listMemberRegisters() {
      const { registerIds } = await client.listMemberRegisters({}, { timeoutMs: stateTimeoutMs });
      return registerIds;
    },
    async isSubscribed(organizationId, registerId) {
      const query = { organizationId, registerId };
      const { subscribed } = await client.checkSubscription(query, { timeoutMs: lookupTimeoutMs });
      return subscribed;
    },
    async listSubscribed(organizationId, all) {
      const registerIds = all.slice(0, maxListed);
      const query = { organizationId, registerIds };
      return (await client.listSubscriptions(query, { timeoutMs: lookupTimeoutMs })).registerIds;
    },
    async *readKeys(registerId, signal) {
      for await (const { part } of client.readKeys({ registerId }, { signal })) yield keyPart(part);
    },
  };
}

/** Retries once when the service is unavailable: a pod that is being replaced ends its calls, and its successor answers. */
export async function retryOnce<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isAppError(error, 'unavailable')) throw error;
    await pause(retryAfterMs);
    return ask();
  }
}

/** Throws AppError bad_gateway for a message without a part. */
function keyPart(part: ReadKeysResponse['part']): KeyPart {
  switch (part.case) {
    case 'begin': {
      const { height, logRoot, transactionCount, filters } = part.value;
      const counts = { height: Number(height), transactionCount: Number(transactionCount), filters };
      return { kind: 'begin', logRoot: encodeHex(logRoot), ...counts };
    }
    case 'filter': {
      const { filter, sizeBytes, bits } = part.value;
      return { kind: 'filter', filter, sizeBytes, bits };
    }
    case 'end':
      return { kind: 'end' };
    default:
      throw failure('KEYS_MALFORMED');
  }
}

function registerFacts(state: GetRegisterStateResponse): RegisterFacts {
  return {
    registerId: state.registerId,
    networkId: state.networkId,
    status: state.status,
    height: Number(state.height),
    // a register service of an earlier version does not tell it
    transactionCount: state.transactionCount === 0n ? undefined : Number(state.transactionCount),
    headHash: state.headHash,
    headTimestamp: state.headTimestamp,
    logFrontier: state.logFrontier,
    ledger: parseRules(JSON.parse(state.rulesJson)),
  };
}

/** A sealed docket as a protobuf message. */
export function wireDocket({ docket, certificate }: SealedDocket, attestations: readonly ConsensusVote[]) {
  const { header, transactions } = docket;
  return {
    header: {
      ...header,
      transactionIds: [...header.transactionIds],
      docketNumber: BigInt(header.docketNumber),
      genesisConfig: header.genesisConfig ?? '',
      sizeBytes: BigInt(header.sizeBytes),
    },
    certificate: {
      ...certificate,
      height: BigInt(certificate.height),
      signatures: certificate.signatures.map((each) => ({
        ...each,
        signature: decodeBase64Any(each.signature),
      })),
    },
    transactions: transactions.map(({ record, payload, payloadHashForm }) => ({
      record,
      payload,
      payloadHashForm,
    })),
    attestations: attestations.map(wireAttestation),
  };
}

function wireAttestation(vote: ConsensusVote) {
  return { ...vote, signature: decodeHex(vote.signature), reason: vote.reason ?? '' };
}
