import type { JsonObject } from '#core/encoding/json.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { invalid } from '../errors.ts';
import type { CompiledDefinition } from '../evaluation/action.ts';
import { type Answered, answerQuestion, type Question } from '../evaluation/tasks.ts';
import type { StateDeps } from '../instances/accumulated-state.ts';
import { type AuthorityDeps, viewerOf } from '../instances/authority.ts';
import { getAction } from '../instances/definitions.ts';
import { readEarlierData } from '../instances/earlier-data.ts';
import { openActions, walletsOf } from '../instances/instance.ts';
import { pinnedOf, type ReadDeps, readInstance } from '../instances/read.ts';
import type { InstanceView } from '../instances/view.ts';

export interface InInstanceDeps extends ReadDeps, StateDeps, AuthorityDeps {
  readonly compiled: (publicationTxId: string, definition: JsonObject) => CompiledDefinition | undefined;
}

/** An instance that a helper is asked about, and what the caller believes of it. */
interface NamedInstance {
  readonly instanceId: string;
  readonly blueprintId: string;
  readonly registerId?: string | undefined;
  readonly publicationTxId?: string | undefined;
  readonly draft?: boolean | undefined;
}

interface AnsweredInInstance {
  readonly answered: Answered;
  /** Other actions of the instance are current too. */
  readonly areOthersCurrent: boolean;
}

/**
 * Answers about an action of an instance, by the definition that the instance runs by and over the data that the caller
 * reads of it. For the wallet that takes the action these are the data of its submission.
 * @param given delegated token of the caller, needed only when something has to be decrypted
 * @throws AppError what readInstance and readEarlierData throw, conflict PIN_UNRESOLVABLE, not_found ACTION_NOT_FOUND,
 * invalid when the request names another definition than the instance has, forbidden DELEGATION_INVALID
 */
export async function answerInInstance(
  deps: InInstanceDeps,
  subject: Subject,
  named: NamedInstance,
  { question, given }: { readonly question: Question; readonly given: string | undefined },
): Promise<AnsweredInInstance> {
  const view = await readInstance(deps, subject, named.instanceId);
  assertNames(view, named);
  const { instance } = view;
  const pinned = pinnedOf(view);
  const action = getAction(pinned, question.actionId);
  const sender = walletsOf(instance, pinned.workflow).get(action.sender);
  const isSender = sender !== undefined && view.wallets.includes(sender);
  const viewer = viewerOf(deps, subject, { wallets: isSender ? [sender] : view.wallets }, given);
  const read = await readEarlierData(deps, { instance, pinned }, action, viewer);
  const earlier = isSender ? read : { ...read, prefill: {} };
  const current = openActions(instance, pinned.workflow, deps.clock.nowMs());
  return {
    answered: answerQuestion(deps.compiled(instance.pin, pinned.definition), { ...question, earlier }),
    areOthersCurrent: current.some(({ actionId }) => actionId !== action.id),
  };
}

function assertNames({ instance }: InstanceView, named: NamedInstance): void {
  const { registerId = instance.registerId, publicationTxId = instance.pin } = named;
  if (named.draft === true) throw invalid('an instance runs by a publication, not by a draft');
  if (named.blueprintId !== instance.blueprintId) throw invalid('blueprintId is not that of the instance');
  if (registerId !== instance.registerId) throw invalid('registerId is not that of the instance');
  if (publicationTxId !== instance.pin) throw invalid('publicationTxId is not that of the instance');
}
