import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { CONSENSUS_TYPES, type ConsensusMessage, signBytes } from '#core/ledger/consensus.ts';
import type { Api } from './api.ts';

const roots = z.object({ docketHash: z.string(), merkleRoot: z.string(), logRoot: z.string() });
const message = z.object({
  type: z.literal(Object.values(CONSENSUS_TYPES)),
  networkId: z.string(),
  registerId: z.string(),
  height: z.number(),
  round: z.number(),
  polRound: z.number(),
  docket: roots.nullable(),
  validatorSetHash: z.string(),
  timestamp: z.string(),
  signBytes: z.string(),
  signature: z.string(),
});
const conviction = z.object({
  id: z.string(),
  kind: z.enum(['duplicate-vote', 'duplicate-proposal']),
  validatorId: z.string(),
  validatorIds: z.array(z.string()),
  height: z.number(),
  round: z.number(),
  step: z.enum(['proposal', 'prevote', 'precommit']),
  signers: z.array(
    z.object({ validatorId: z.string(), publicKey: z.string(), algorithm: z.enum(ALGORITHMS) }),
  ),
  first: message,
  second: message,
  heldBy: z.array(z.string()),
  firstSeenAt: z.string(),
  proposalId: z.string().nullable(),
});
const answer = z.object({
  registerId: z.string(),
  evidence: z.array(conviction),
  unreachable: z.array(z.string()),
});

/** Two signed messages of one member for one position (height, round, kind). */
export type Conviction = z.output<typeof conviction>;
type Message = z.output<typeof message>;

/** The evidence against members that the validators of a register hold. */
export async function convictionsOf(api: Api, token: string, registerId: string): Promise<Conviction[]> {
  const path = `/api/admin/validators/${registerId}/evidence`;
  return answer.parse((await api.expect(200, 'GET', path, { token })).body).evidence;
}

/** Whether this evidence alone proves that one key signed two different messages for one position. */
export function isProof({ signers, first, second }: Conviction): boolean {
  const [signer, ...more] = signers;
  if (signer === undefined || more.length > 0) return false;
  const verifier = createVerifier(nodeEd25519());
  const isSigned = (each: Message) => {
    const { docket, signBytes: shown, signature, ...facts } = each;
    const said: ConsensusMessage = { ...facts, docket: docket ?? undefined };
    const bytes = signBytes(said);
    const publicKey = parsePublicKey(signer.algorithm, signer.publicKey);
    const given = { algorithm: signer.algorithm, publicKey, signature: Buffer.from(signature, 'base64') };
    return Buffer.from(shown, 'base64').equals(bytes) && verifier.verify({ ...given, message: bytes });
  };
  const place = ({ type, registerId, height, round }: Message) =>
    JSON.stringify([type, registerId, height, round]);
  const content = ({ docket, polRound }: Message) => JSON.stringify([docket, polRound]);
  return (
    isSigned(first) &&
    isSigned(second) &&
    place(first) === place(second) &&
    content(first) !== content(second)
  );
}

const condition = z.object({ type: z.string(), status: z.string(), reason: z.string() });
const conditions = z.object({
  registers: z.array(
    z.object({
      registerId: z.string(),
      conditions: z.array(condition.extend({ validatorIds: z.array(z.string()) })),
      members: z.array(z.object({ validatorId: z.string(), conditions: z.array(condition) })),
    }),
  ),
});

/** The warnings of `GET /api/admin/validation/status`: of a register, and of each of its members by id. */
export async function conditionsOf(api: Api, token: string, registerId: string) {
  const { body } = await api.expect(200, 'GET', '/api/admin/validation/status', { token });
  const found = conditions.parse(body).registers.find((one) => one.registerId === registerId);
  const members = found?.members.map((one) => [one.validatorId, one.conditions] as const);
  return { register: found?.conditions ?? [], members: Object.fromEntries(members ?? []) };
}

const proposals = z.object({
  items: z.array(z.object({ proposalId: z.string(), operationType: z.string(), target: z.string() })),
});

/** The open proposals of the roster. */
export async function openProposals(api: Api, token: string, registerId: string) {
  const path = `/api/registers/${registerId}/governance/proposals?status=Pending`;
  return proposals.parse((await api.expect(200, 'GET', path, { token })).body).items;
}
