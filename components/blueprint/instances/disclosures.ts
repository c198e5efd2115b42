import { z } from 'zod';
import type { Verifier } from '#core/crypto/verify.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { invalid, refusal } from '../errors.ts';
import { txIdSchema } from '../identifiers.ts';
import { accumulate, type StateDeps, type StepView, viewSteps } from './accumulated-state.ts';
import { type AuthorityDeps, viewerOf } from './authority.ts';
import { getAction } from './definitions.ts';
import { type ProofDeps, proveViews } from './disclosure-files.ts';
import { openActions } from './instance.ts';
import { pinnedOf, type ReadDeps } from './read.ts';
import { findInstances, listSteps } from './store.ts';
import { type InstanceView, viewOf } from './view.ts';

export interface DisclosureDeps extends ReadDeps, StateDeps, AuthorityDeps {
  readonly ledger: StateDeps['ledger'] & ProofDeps['ledger'];
  readonly verifier: Verifier;
}

const text = z.string();
const data = z.record(text, z.unknown());

export const disclosureQuery = z.object({
  proof: z.stringbool().default(false).describe('Adds files that prove to others what was disclosed to you.'),
  transactionId: txIdSchema.optional().describe('With proof: files of this step alone.'),
});

type DisclosureQuery = z.output<typeof disclosureQuery>;

export const disclosuresSchema = z
  .object({
    instanceId: text,
    actionId: z.int().nullable(),
    registerId: text,
    recipientResolved: z.boolean(),
    disclosures: z.array(
      z.object({
        actionId: z.int(),
        actionTitle: text,
        disclosedAt: text.describe('ISO 8601, UTC.'),
        data,
        transactionId: text.optional().describe('With proof: the step.'),
        files: z
          .array(text)
          .optional()
          .describe('With proof: texts of disclosure files, one for each of your groups; every byte counts.'),
      }),
    ),
    disclosedFields: data,
    warnings: z.array(
      z.object({
        actionId: z.int(),
        code: z
          .enum(['DECRYPT_FAILED', 'PROOF_UNAVAILABLE', 'PROOF_OMITTED'])
          .describe(
            'PROOF_UNAVAILABLE: no file can be made that verifies. PROOF_OMITTED: the answer has no room for more ' +
              'files; request those of the step by its transactionId.',
          ),
      }),
    ),
  })
  .meta({ id: 'Disclosures' });

interface Requested extends DisclosureQuery {
  readonly instanceId: string;
  readonly actionId?: number;
}

/**
 * What was disclosed to the caller. The answer is empty where the caller is no recipient.
 * @throws AppError not_found INSTANCE_NOT_FOUND, ACTION_NOT_FOUND, TX_NOT_FOUND, conflict PIN_UNRESOLVABLE, invalid
 */
export async function readDisclosures(
  deps: DisclosureDeps,
  subject: Subject,
  { instanceId: id, actionId, proof, transactionId }: Requested,
  given: string | undefined,
): Promise<z.output<typeof disclosuresSchema>> {
  if (transactionId !== undefined && !proof) throw invalid('transactionId needs proof=true');
  const view = await findOwnView(deps, subject, id);
  const { instance, participants } = view;
  const pinned = pinnedOf(view);
  if (actionId !== undefined) getAction(pinned, actionId);
  const [current] = openActions(instance, pinned.workflow, deps.clock.nowMs());
  const isRecipient = participants.length > 0;
  const steps = isRecipient ? await listSteps(deps.db.read, instance.registerId, instance.instanceId) : [];
  const viewer = { ...viewerOf(deps, subject, view, given), withTexts: proof };
  const views = await viewSteps(deps, { instance, pinned }, steps, viewer);
  const disclosed = views.filter((each) => each.data !== undefined);
  const wanted = proof ? disclosed.filter(({ step }) => (transactionId ?? step.txId) === step.txId) : [];
  if (transactionId !== undefined && wanted.length === 0) throw refusal('TX_NOT_FOUND');
  const proven = await proveViews(deps, instance.registerId, wanted);
  return {
    instanceId: instance.instanceId,
    actionId: actionId ?? current?.actionId ?? null,
    registerId: instance.registerId,
    recipientResolved: isRecipient,
    disclosures: disclosed.map(({ step, data: own }) => ({
      actionId: step.actionId,
      actionTitle: getAction(pinned, step.actionId).title,
      disclosedAt: step.sealedAt.toISOString(),
      data: own ?? {},
      ...(proof && { transactionId: step.txId, files: [...(proven.files.get(step.txId) ?? [])] }),
    })),
    disclosedFields: mergedOf(views),
    warnings: [
      ...views.flatMap(({ step: { actionId: of }, isUnopened }) =>
        isUnopened ? [{ actionId: of, code: 'DECRYPT_FAILED' as const }] : [],
      ),
      ...proven.warnings,
    ],
  };
}

/** The data of actions; what rejections say is no field of the workflow. */
function mergedOf(views: readonly StepView[]) {
  return accumulate(views.filter(({ step }) => !step.isRejection)).merged;
}

/** The instance that the caller takes part in, else the first one of the id. */
async function findOwnView(deps: ReadDeps, { bearer }: Subject, id: string): Promise<InstanceView> {
  const candidates = await findInstances(deps.db.read, id, new Date(deps.clock.nowMs()));
  const wallets = await deps.listOwn(bearer);
  const views = await Promise.all(candidates.map((instance) => viewOf(deps, instance, wallets)));
  const view = views.find(({ participants }) => participants.length > 0) ?? views[0];
  if (view === undefined) throw refusal('INSTANCE_NOT_FOUND');
  return view;
}
