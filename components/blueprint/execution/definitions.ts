import type { JsonObject } from '#core/encoding/json.ts';
import type { Database } from '#kit/db/db.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { getDraft, parseStored } from '../definitions/drafts/drafts.ts';
import { getPublication, type PublicationRouteDeps } from '../definitions/publications/routes.ts';
import { listPublications, listRegistersOf } from '../definitions/publications/store.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal } from '../errors.ts';
import { type CompiledDefinition, compileDefinition } from '../evaluation/action.ts';
import type { DraftJudge } from '../evaluation/pool.ts';
import { type Answered, answerQuestion, type Question } from '../evaluation/tasks.ts';
import type { InInstanceDeps } from './in-instance.ts';

export interface HelperDeps extends Pick<PublicationRouteDeps, 'index' | 'canRead'>, InInstanceDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly judge: Pick<DraftJudge, 'answer'>;
  readonly compiled: CompiledDefinitions;
}

/** Prepared definitions of publications, which never change, by the id of the publication. */
type CompiledDefinitions = (
  publicationTxId: string,
  definition: JsonObject,
) => CompiledDefinition | undefined;

const mostCompiled = 200;

/** Keeps the definitions that were used last. */
export function createCompiledDefinitions(): CompiledDefinitions {
  const kept = new Map<string, CompiledDefinition | undefined>();
  return (publicationTxId, definition) => {
    const known = kept.get(publicationTxId);
    const compiled = known ?? compileDefinition(definition);
    kept.delete(publicationTxId);
    kept.set(publicationTxId, compiled);
    const [oldest] = kept.keys();
    if (kept.size > mostCompiled && oldest !== undefined) kept.delete(oldest);
    return compiled;
  };
}

/** Which definition a helper is asked about. */
interface NamedDefinition {
  readonly blueprintId: string;
  readonly registerId?: string | undefined;
  readonly publicationTxId?: string | undefined;
  readonly draft?: boolean | undefined;
}

/**
 * Answers about an action: of a draft of the caller's organisation beside the service, of a publication in it.
 * @throws AppError BLUEPRINT_NOT_FOUND, PUBLICATION_NOT_FOUND, REGISTER_UNAVAILABLE, DRAFT_TOO_COMPLEX,
 * DRAFT_JUDGING_BUSY
 */
export async function answerAbout(
  deps: HelperDeps,
  subject: Subject,
  named: NamedDefinition,
  question: Question,
): Promise<Answered> {
  if (named.draft === true) {
    const draft = await getDraft(deps, subject.caller, named.blueprintId);
    return deps.judge.answer(parseStored(draft), question);
  }
  const { publicationTxId, definition } = await findNamed(deps, subject, named);
  return answerQuestion(deps.compiled(publicationTxId, definition), question);
}

/** The named publication, else the latest on a register that the caller may read. */
async function findNamed(deps: HelperDeps, subject: Subject, named: NamedDefinition) {
  const { blueprintId, registerId, publicationTxId } = named;
  if (registerId !== undefined)
    return getPublication(deps, subject, { blueprintId, registerId, publicationTxId });
  if (publicationTxId !== undefined) {
    const [found] = await listPublications(deps.db.read, { blueprintId, publicationTxId });
    if (found !== undefined && (await deps.canRead(subject, found.registerId))) return found;
    throw refusal('PUBLICATION_NOT_FOUND');
  }
  const readable: string[] = [];
  for (const each of await listRegistersOf(deps.db.read, blueprintId))
    if (await deps.canRead(subject, each)) readable.push(each);
  const all = await listPublications(deps.db.read, { blueprintId });
  const found = all.find((one) => readable.includes(one.registerId));
  if (found === undefined) throw refusal('BLUEPRINT_NOT_FOUND');
  return found;
}
