import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { GOVERNANCE_BLUEPRINT } from '#core/ledger/governance/control.ts';
import { operationPayloadSchema, PROPOSAL_STATUSES } from '#core/ledger/governance/operation.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  callerOf,
  idempotencyHeaders,
  jsonAnswer,
  page,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { bearerOf } from '../../bearer.ts';
import type { Validators } from '../../clients/validators.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../../registers/state/access.ts';
import { getVisibleRegister, getWritableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { reasonText } from '../../registers/state/texts.ts';
import { type Answer, answerOf, isAccepted, sendAnswer } from '../control/answer.ts';
import { resolveSigner } from '../control/roster-authorisation.ts';
import { submitSigned } from '../control/submit.ts';
import { assertStaysOperational, mayForce } from '../liveness/operational.ts';
import { loadRules, type RulesDeps } from '../rules/load.ts';
import { type DecideDeps, decide } from './decide.ts';
import { forceQuery, operationBody, operationOf, submittedApproval, word } from './operation.ts';
import { presentBallot, presentOperation, presentProposal, presentRoster } from './present.ts';
import { findProposal, listOperations, listProposals } from './store.ts';
import { enact, vote } from './vote.ts';

export interface GovernanceDeps extends DecideDeps, RulesDeps {
  readonly validators: Pick<Validators, 'submit' | 'view'>;
  readonly idempotency: Idempotency;
}

const tags = ['Governance'];
const registerParams = z.object({ registerId: z.string() });
const proposalParams = z.object({ registerId: z.string(), proposalId: z.string() });
const hash = z.string().regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hex characters');

const signedBody = z.object({
  transactionId: hash,
  actionId: z.string().min(1).max(128),
  payload: z.record(z.string(), z.unknown()),
  createdAt: z.string().min(1).max(64),
  expiresAt: z.string().max(64).optional(),
  previousTransactionId: hash.optional(),
  metadata: z
    .record(z.string().min(1).max(128), z.string().max(4096))
    .refine((metadata) => metadata['Type'] === 'Control', 'Type is not Control'),
  signatures: z
    .array(
      z.object({
        publicKey: z.string().min(1).max(1024),
        signatureValue: z.string().min(1).max(1024),
        algorithm: z.enum(ALGORITHMS),
      }),
    )
    .min(1)
    .max(16),
});

const modes = ['auto', 'direct', 'proposal'] as const;

const proposeBody = z.union([
  z.object({ transaction: signedBody.describe('A governance transaction that was signed elsewhere.') }),
  operationBody.extend({
    mode: word(modes)
      .default('auto')
      .describe(
        'direct: one transaction with its approvals; auto: the same if they suffice, else a proposal.',
      ),
  }),
]);

const voteBody = z.union([
  z.object({ transaction: signedBody }),
  z.object({
    decision: z.enum(['approve', 'reject']).optional(),
    approverDid: z
      .string()
      .max(255)
      .optional()
      .describe('Your own DID; the one with the most powerful role when absent.'),
    comment: reasonText.optional(),
    approvals: z.array(submittedApproval).min(1).max(50).optional().describe('Votes that others signed.'),
  }),
]);

const proposalsQuery = paging().extend({ status: word(PROPOSAL_STATUSES).optional() });

function proposalIdOf(text: string): string {
  const id = findTxId(text);
  if (id === undefined) throw refusal('PROPOSAL_NOT_FOUND');
  return id;
}

function mountReads(app: App, deps: GovernanceDeps): void {
  app.get(
    '/api/registers/:registerId/governance/roster',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getGovernanceRoster',
        tags,
        summary: 'Who governs the register, replayed from the chain',
        params: registerParams,
        response: jsonAnswer('The roster.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(
        deps.database.read,
        callerOf(request),
        request.params.registerId,
      );
      return presentRoster(await loadRules(deps, register));
    },
  );
  app.get(
    '/api/registers/:registerId/governance/history',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listGovernanceOperations',
        tags,
        summary: 'Proposals, votes and changes, newest first',
        params: registerParams,
        querystring: paging(),
        response: jsonAnswer('A page of operations.'),
      },
    },
    async (request) => {
      const { query } = request;
      const register = await getVisibleRegister(
        deps.database.read,
        callerOf(request),
        request.params.registerId,
      );
      await loadRules(deps, register);
      const { items, total } = await listOperations(
        deps.database.read,
        register.registerNo,
        pageWindow(query),
      );
      return { registerId: register.registerId, ...page(items.map(presentOperation), query, total) };
    },
  );
}

function mountProposals(app: App, deps: GovernanceDeps): void {
  app.get(
    '/api/registers/:registerId/governance/proposals',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listGovernanceProposals',
        tags,
        summary: 'Proposals, newest first',
        params: registerParams,
        querystring: proposalsQuery,
        response: jsonAnswer('A page of proposals.'),
      },
    },
    async (request) => {
      const { query } = request;
      const register = await getVisibleRegister(
        deps.database.read,
        callerOf(request),
        request.params.registerId,
      );
      const rules = await loadRules(deps, register);
      const found = await listProposals(
        deps.database.read,
        register.registerNo,
        query.status,
        pageWindow(query),
      );
      const nowMs = deps.clock.nowMs();
      const items = found.items.map((row) => presentProposal(row, rules, nowMs));
      return { registerId: register.registerId, ...page(items, query, found.total) };
    },
  );
  app.get(
    '/api/registers/:registerId/governance/proposals/:proposalId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getGovernanceProposal',
        tags,
        summary: 'One proposal, with the digests that voters sign',
        params: proposalParams,
        response: jsonAnswer('The proposal.'),
      },
    },
    async (request) => {
      const { params } = request;
      const register = await getVisibleRegister(deps.database.read, callerOf(request), params.registerId);
      const rules = await loadRules(deps, register);
      const row = await findProposal(
        deps.database.read,
        register.registerNo,
        proposalIdOf(params.proposalId),
      );
      if (row === undefined) throw refusal('PROPOSAL_NOT_FOUND');
      return presentBallot(row, rules, deps.clock.nowMs());
    },
  );
}

/** Submits a governance transaction that was signed outside this service; the validators judge it. */
async function submitExternal(
  deps: GovernanceDeps,
  register: Register,
  signed: z.output<typeof signedBody>,
): Promise<Answer> {
  const control = { ...signed, blueprintId: GOVERNANCE_BLUEPRINT };
  const { txId, answer } = await submitSigned(deps, register, {
    ...control,
    transactionId: signed.transactionId.toLowerCase(),
  });
  return answerOf(answer, { txId, registerId: register.registerId, status: 'submitted' });
}

async function propose(
  deps: GovernanceDeps,
  register: Register,
  subject: Subject & { readonly isForced: boolean },
  body: z.output<typeof proposeBody>,
): Promise<Answer> {
  const rules = await loadRules(deps, register);
  const at = { register, rules };
  if ('transaction' in body) {
    const signed = operationPayloadSchema.safeParse(body.transaction.payload).data;
    if (signed !== undefined) await assertStaysOperational(deps, at, signed.operation, subject.isForced);
    return submitExternal(deps, register, body.transaction);
  }
  const { signer: proposer, entry } = await resolveSigner(deps.wallets, subject, rules, body.proposerDid);
  const now = formatLedgerTimestamp(deps.clock.nowMicros());
  const operation = await operationOf(body, { proposerDid: entry.subject, now }, deps.wallets);
  await assertStaysOperational(deps, at, operation, subject.isForced);
  const decided = await decide(deps, { ...at, proposer }, operation, body.mode);
  const { txId, answer, proposalId, votesReceived, votesRequired } = decided;
  return answerOf(answer, {
    txId,
    registerId: register.registerId,
    operationType: operation.operationType,
    status: 'submitted',
    requiresGovernanceVote: proposalId !== undefined,
    ...(proposalId !== undefined && { proposalId }),
    votesReceived,
    votesRequired,
  });
}

function mountWrites(app: App, deps: GovernanceDeps): void {
  app.post(
    '/api/registers/:registerId/governance/propose',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'proposeGovernanceChange',
        tags,
        summary:
          'Change the roster, the validators or a policy; opens a proposal where other members must agree',
        params: registerParams,
        querystring: forceQuery,
        body: proposeBody,
        headers: idempotencyHeaders,
        response: jsonAnswer('The transaction was submitted.', 202),
      },
    },
    async (request, reply) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const { body } = request;
      const isForced = mayForce(subject.caller, request.query.force);
      const register = await getWritableRegister(
        deps.database.read,
        subject.caller,
        request.params.registerId,
      );
      const key = request.headers['idempotency-key'];
      const scope = [`governance:${register.registerId}:${subject.caller.subject}`];
      const answer = await deps.idempotency.once(
        { key, scope, body },
        () => propose(deps, register, { ...subject, isForced }, body),
        isAccepted,
      );
      return sendAnswer(reply, answer);
    },
  );
  app.post(
    '/api/registers/:registerId/governance/proposals/:proposalId/approvals',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'voteOnGovernanceProposal',
        tags,
        summary: 'Vote on a proposal',
        params: proposalParams,
        body: voteBody,
        response: jsonAnswer('The vote was submitted.', 202),
      },
    },
    async (request, reply) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const { body, params } = request;
      const register = await getWritableRegister(deps.database.read, subject.caller, params.registerId);
      if ('transaction' in body)
        return sendAnswer(reply, await submitExternal(deps, register, body.transaction));
      const proposalId = proposalIdOf(params.proposalId);
      return sendAnswer(reply, await vote(deps, { register, subject, proposalId }, body));
    },
  );
  app.post(
    '/api/registers/:registerId/governance/proposals/:proposalId/enact',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'enactGovernanceProposal',
        tags,
        summary: 'Put an approved proposal into effect, where that has not happened by itself',
        params: proposalParams,
        response: jsonAnswer('The transaction was submitted.', 202),
      },
    },
    async (request, reply) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const { params } = request;
      const register = await getWritableRegister(deps.database.read, subject.caller, params.registerId);
      const proposalId = proposalIdOf(params.proposalId);
      return sendAnswer(reply, await enact(deps, { register, subject, proposalId }));
    },
  );
}

/** Roster, history and proposals of a register. */
export function mountGovernance(app: App, deps: GovernanceDeps): void {
  mountReads(app, deps);
  mountProposals(app, deps);
  mountWrites(app, deps);
}
