import { z } from 'zod';
import { findRegisterId } from '#core/ledger/register-id.ts';
import { type App, problemSchema } from '#kit/http/http.ts';
import { type CollectDeps, collectEvidence } from './collect.ts';
import { presentEvidence } from './present.ts';

const text = z.string();
const count = z.int().min(0);
const rootsShape = { docketHash: text, merkleRoot: text, logRoot: text };
const messageSchema = z
  .object({
    type: z.int().min(1).max(3).describe('1 proposal, 2 prevote, 3 precommit'),
    networkId: text,
    registerId: text,
    height: count,
    round: count,
    polRound: z.int().min(-1),
    docket: z.object(rootsShape).nullable().describe('null in a vote for nil'),
    validatorSetHash: text,
    timestamp: text,
    signBytes: text.describe('base64 of the bytes that the signature is over'),
    signature: text.describe('base64'),
  })
  .describe('a signed message of the consensus');
const certificateSchema = z
  .object({
    networkId: text,
    version: z.literal(1),
    height: count,
    round: count,
    ...rootsShape,
    validatorSetHash: text,
    signatures: z.array(z.object({ validatorId: text, index: count, timestamp: text, signature: text })),
  })
  .describe('a certificate of a docket');
const entrySchema = z.object({
  id: text.describe('one per position at which a validator signs once'),
  kind: z.enum(['duplicate-proposal', 'duplicate-vote', 'conflicting-certificate']),
  validatorId: text.nullable().describe('null for conflicting certificates'),
  validatorIds: z.array(text).describe('whom it convicts'),
  height: count,
  round: count.nullable(),
  step: text.nullable().describe('proposal, prevote or precommit'),
  signers: z
    .array(z.object({ validatorId: text, publicKey: text, algorithm: text }))
    .describe('members whose keys verify the signatures; for two certificates the full set'),
  first: z.union([messageSchema, certificateSchema]),
  second: z.union([messageSchema, certificateSchema]),
  heldBy: z.array(text).describe('members that have it in their log'),
  firstSeenAt: text,
  proposalId: text.nullable().describe('the open proposal to suspend the validator for such evidence'),
});
const answerSchema = z.object({
  registerId: text,
  evidence: z.array(entrySchema),
  unreachable: z.array(text).describe('members that did not answer'),
});

/** `GET /api/admin/validators/{registerId}/evidence`, for all members of the register. */
export function mountEvidence(app: App, deps: CollectDeps): void {
  app.get(
    '/api/admin/validators/:registerId/evidence',
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Api' },
      schema: {
        operationId: 'listValidatorEvidence',
        summary: 'Conflicting signed messages of the validators of a register',
        tags: ['Administration'],
        params: z.object({ registerId: text }),
        response: { 200: answerSchema, 404: problemSchema },
      },
    },
    async (request) =>
      presentEvidence(await collectEvidence(deps, findRegisterId(request.params.registerId) ?? '')),
  );
}
