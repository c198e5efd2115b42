import { randomUUIDv7 } from 'node:crypto';
import type { Database } from '#kit/db/db.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { addDraft, type DraftDeps, organizationOf, storedForm } from '../drafts/drafts.ts';
import type { PublicationIndex } from '../publications/follow.ts';
import { findPublication } from '../publications/store.ts';
import type { Subject } from '../publications/visibility.ts';
import { type GovernanceDeps, getPublisher } from './governance.ts';

export interface AmendDeps extends GovernanceDeps, DraftDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly index: Pick<PublicationIndex, 'read'>;
}

interface AmendRequest {
  readonly registerId: string;
  readonly blueprintId: string;
  readonly publicationTxId: string;
}

/**
 * Makes a draft of a publication, which is published under the same blueprint id again.
 * @throws AppError GOVERNANCE_ROSTER_NOT_SEALED, GOVERNANCE_ROSTER_UNAVAILABLE, PUBLISH_ROLE_REQUIRED,
 * PUBLICATION_NOT_FOUND, DRAFT_LIMIT, ORGANIZATION_REQUIRED
 */
export async function amendPublication(deps: AmendDeps, subject: Subject, request: AmendRequest) {
  organizationOf(subject.caller);
  const { registerId, blueprintId, publicationTxId } = request;
  await getPublisher(deps, subject, { registerId, act: 'blueprint.amend' });
  await deps.index.read(registerId);
  const found = await findPublication(deps.db.read, request);
  if (found === undefined) throw refusal('PUBLICATION_NOT_FOUND');
  const source = { registerId, blueprintId, publicationTxId, ordinal: found.ordinal };
  const definition = storedForm(found.definition, blueprintId, source);
  const { id } = await addDraft(deps, subject.caller, {
    id: randomUUIDv7(),
    blueprintId,
    definition,
    source,
  });
  return { draftBlueprintId: id, sourcePublicationTxId: publicationTxId, registerId };
}
