import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { GOVERNANCE_BLUEPRINT } from '#core/ledger/governance/control.ts';
import { operationPayloadSchema, PROPOSAL_STATUSES } from '#core/ledger/governance/operation.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, addRoute, bearerOf, json, page, pageSchema, pageWindow, paging } from '#kit/http/http.ts';
import type { Validators } from '../../clients/validators.ts';
import { ofSubmission, ofVisibleRegister, ofWritableRegister, refusal, refusals } from '../../errors.ts';
import { type Subject, writableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { reasonText } from '../../registers/state/texts.ts';
import { assertAccepted } from '../control/answer.ts';
import { resolveSigner } from '../control/roster-authorisation.ts';
import { submitSigned } from '../control/submit.ts';
import { assertStaysOperational, mayForce } from '../liveness/operational.ts';
import { loadRules, type RulesDeps, visibleRules } from '../rules/load.ts';
import { type DecideDeps, decide, presentVotes } from './decide.ts';
import { forceQuery, operationBody, operationOf, submittedApproval, word } from './operation.ts';
import { presentBallot, presentOperation, presentProposal, presentRoster } from './present.ts';
import {
  ballotSchema,
  historyEntrySchema,
  proposalSchema,
  rosterSchema,
  submittedEnactmentSchema,
  submittedOperationSchema,
  submittedVoteSchema,
} from './schemas.ts';
import { findProposal, listOperations, listProposals } from './store.ts';
import { enact, vote } from './vote.ts';

export interface GovernanceDeps extends DecideDeps, RulesDeps {
  readonly validators: Pick<Validators, 'submit' | 'view'>;
  readonly idempotency: Idempotency;
}

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

const read = {
  method: 'GET',
  tag: 'Governance',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
} as const;
const ofRules = [...ofVisibleRegister, ...refusals('REGISTER_NOT_READY')];

function mountReads(app: App, deps: GovernanceDeps): void {
  const common = {
    ...read,
    params: registerParams,
    refusals: ofRules,
    resource: visibleRules(deps),
  } as const;
  addRoute(app, {
    ...common,
    path: '/api/registers/:registerId/governance/roster',
    operationId: 'getGovernanceRoster',
    summary: 'Who governs the register, replayed from the chain',
    answers: { 200: json('The roster.', rosterSchema) },
    handle: ({ resource: { rules } }) => presentRoster(rules),
  });
  addRoute(app, {
    ...common,
    path: '/api/registers/:registerId/governance/history',
    operationId: 'listGovernanceOperations',
    summary: 'Proposals, votes and changes, newest first',
    query: paging(),
    answers: {
      200: json('A page of operations.', pageSchema(historyEntrySchema).extend({ registerId: z.string() })),
    },
    handle: async ({ query, resource: { register } }) => {
      const { registerNo, registerId } = register;
      const { items, total } = await listOperations(deps.database.read, registerNo, pageWindow(query));
      return { registerId, ...page(items.map(presentOperation), query, total) };
    },
  });
}

function mountProposals(app: App, deps: GovernanceDeps): void {
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/governance/proposals',
    operationId: 'listGovernanceProposals',
    summary: 'Proposals, newest first',
    params: registerParams,
    query: proposalsQuery,
    answers: {
      200: json('A page of proposals.', pageSchema(proposalSchema).extend({ registerId: z.string() })),
    },
    refusals: ofRules,
    resource: visibleRules(deps),
    handle: async ({ query, resource: { register, rules } }) => {
      const { registerNo, registerId } = register;
      const found = await listProposals(deps.database.read, registerNo, query.status, pageWindow(query));
      const nowMs = deps.clock.nowMs();
      const items = found.items.map((row) => presentProposal(row, rules, nowMs));
      return { registerId, ...page(items, query, found.total) };
    },
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/governance/proposals/:proposalId',
    operationId: 'getGovernanceProposal',
    summary: 'One proposal, with the digests that voters sign',
    params: proposalParams,
    answers: { 200: json('The proposal.', ballotSchema) },
    refusals: [...ofRules, ...refusals('PROPOSAL_NOT_FOUND')],
    resource: visibleRules(deps),
    handle: async ({ params, resource: { register, rules } }) => {
      const proposalId = proposalIdOf(params.proposalId);
      const row = await findProposal(deps.database.read, register.registerNo, proposalId);
      if (row === undefined) throw refusal('PROPOSAL_NOT_FOUND');
      return presentBallot(row, rules, deps.clock.nowMs());
    },
  });
}

/** Submits a governance transaction that was signed outside this service; the validators judge it. */
async function submitExternal(deps: GovernanceDeps, register: Register, signed: z.output<typeof signedBody>) {
  const control = { ...signed, blueprintId: GOVERNANCE_BLUEPRINT };
  const { txId, answer } = await submitSigned(deps, register, {
    ...control,
    transactionId: signed.transactionId.toLowerCase(),
  });
  assertAccepted(answer);
  return { txId, registerId: register.registerId, status: 'submitted' } as const;
}

async function propose(
  deps: GovernanceDeps,
  register: Register,
  subject: Subject & { readonly isForced: boolean },
  body: z.output<typeof proposeBody>,
): Promise<z.output<typeof submittedOperationSchema>> {
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
  const { txId, answer } = decided;
  assertAccepted(answer);
  return {
    txId,
    registerId: register.registerId,
    operationType: operation.operationType,
    status: 'submitted',
    ...presentVotes(decided),
  };
}

const write = {
  method: 'POST',
  tag: 'Governance',
  policy: 'RequireAuthenticated',
  rateLimit: 'Strict',
} as const;
const ofChanges = [...ofWritableRegister, ...ofSubmission, ...refusals('NOT_ON_ROSTER')];

const proposeExample = {
  operationType: 'add-member',
  targetDid: 'did:platform:w:w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
  targetRole: 'Auditor',
  justification: 'She audits the register from May',
} as const;

function mountWrites(app: App, deps: GovernanceDeps): void {
  const resource = writableRegister(() => deps.database.read);
  addRoute(app, {
    ...write,
    path: '/api/registers/:registerId/governance/propose',
    operationId: 'proposeGovernanceChange',
    summary: 'Change the roster, the validators or a policy; opens a proposal where other members must agree',
    params: registerParams,
    query: forceQuery,
    body: { schema: proposeBody, example: proposeExample },
    idempotency: deps.idempotency,
    answers: { 202: json('The transaction was submitted.', submittedOperationSchema) },
    refusals: ofChanges,
    resource,
    handle: ({ caller, query, body, resource: register, request }) => {
      const isForced = mayForce(caller, query.force);
      return propose(deps, register, { caller, token: bearerOf(request), isForced }, body);
    },
  });
  addRoute(app, {
    ...write,
    path: '/api/registers/:registerId/governance/proposals/:proposalId/approvals',
    operationId: 'voteOnGovernanceProposal',
    summary: 'Vote on a proposal',
    params: proposalParams,
    body: { schema: voteBody, example: { decision: 'approve', comment: 'Agreed in the May meeting' } },
    answers: { 202: json('The vote was submitted.', submittedVoteSchema) },
    refusals: [...ofChanges, ...refusals('PROPOSAL_NOT_FOUND', 'PROPOSAL_CLOSED')],
    resource,
    handle: ({ caller, params, body, resource: register, request }) => {
      if ('transaction' in body) return submitExternal(deps, register, body.transaction);
      const proposalId = proposalIdOf(params.proposalId);
      return vote(deps, { register, subject: { caller, token: bearerOf(request) }, proposalId }, body);
    },
  });
  addRoute(app, {
    ...write,
    path: '/api/registers/:registerId/governance/proposals/:proposalId/enact',
    operationId: 'enactGovernanceProposal',
    summary: 'Put an approved proposal into effect, where that has not happened by itself',
    params: proposalParams,
    answers: { 202: json('The transaction was submitted.', submittedEnactmentSchema) },
    refusals: [...ofChanges, ...refusals('PROPOSAL_NOT_FOUND', 'PROPOSAL_CLOSED')],
    resource,
    handle: ({ caller, params, resource: register, request }) => {
      const proposalId = proposalIdOf(params.proposalId);
      return enact(deps, { register, subject: { caller, token: bearerOf(request) }, proposalId });
    },
  });
}

/** Roster, history and proposals of a register. */
export function mountGovernance(app: App, deps: GovernanceDeps): void {
  mountReads(app, deps);
  mountProposals(app, deps);
  mountWrites(app, deps);
}
