import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import {
  type GetRegisterStateResponse,
  type LedgerService,
  type ValidatorMember as WireMember,
  WriteOutcome as WireOutcome,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import type { Ledger, RegisterFacts, SealedDocket, WriteOutcome } from './sealing/ports.ts';

const lookupTimeoutMs = 5_000;
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

/** The register service behind the port that sealing and admission know. */
export function createLedger(client: RpcClient<typeof LedgerService.method>): Ledger {
  return {
    async lookup(items) {
      const { answers } = await client.lookup({ items: [...items] }, { timeoutMs: lookupTimeoutMs });
      return answers;
    },
    async writeDocket(sealed, attestation) {
      const answer = await client.writeDocket(wireDocket(sealed, attestation), { timeoutMs: writeTimeoutMs });
      const outcome = outcomes[answer.outcome];
      if (outcome === undefined)
        throw new AppError('bad_gateway', 'BAD_GATEWAY', 'The register service gave no outcome');
      const refusals = answer.refusals.map(({ code, message, field }) => `${code} ${field} ${message}`);
      return { outcome, height: Number(answer.height), refusals };
    },
    async findRegister(registerId) {
      const state = await client.getRegisterState({ registerId }, { timeoutMs: stateTimeoutMs });
      return state.found ? registerFacts(state) : undefined;
    },
    async listMemberRegisters() {
      const { registerIds } = await client.listMemberRegisters({}, { timeoutMs: stateTimeoutMs });
      return registerIds;
    },
    async isSubscribed(organizationId, registerId) {
      const question = { organizationId, registerId };
      const { subscribed } = await client.checkSubscription(question, { timeoutMs: lookupTimeoutMs });
      return subscribed;
    },
  };
}

function registerFacts(state: GetRegisterStateResponse): RegisterFacts {
  return {
    registerId: state.registerId,
    networkId: state.networkId,
    status: state.status,
    height: Number(state.height),
    headHash: state.headHash,
    headTimestamp: state.headTimestamp,
    logFrontier: state.logFrontier,
    members: state.validators.map(memberOf),
    policy: parsePolicy(JSON.parse(state.policyJson)),
    roster: state.roster,
  };
}

function memberOf({ validatorId, publicKey, algorithm }: WireMember): ValidatorMember {
  if (!isAlgorithm(algorithm))
    throw new AppError('bad_gateway', 'BAD_GATEWAY', `Unknown algorithm of ${validatorId}`);
  return { validatorId, publicKey, algorithm };
}

function wireDocket({ docket, certificate }: SealedDocket, attestation: ConsensusVote | undefined) {
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
    attestations: attestation === undefined ? [] : [wireAttestation(attestation)],
  };
}

function wireAttestation(vote: ConsensusVote) {
  return { ...vote, signature: decodeHex(vote.signature), reason: vote.reason ?? '' };
}
