import { randomUUIDv7 } from 'node:crypto';
import { execDefHash } from '#core/blueprint/hashes.ts';
import { MAX_BLUEPRINT_BYTES, memberKind } from '#core/blueprint/members.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '#core/encoding/json.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { BlueprintDatabase, DraftSource } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { DraftBody } from './schemas.ts';
import {
  countDrafts,
  type Draft,
  type DraftScope,
  deleteDraft,
  findDraft,
  insertDraft,
  updateDraft,
} from './store.ts';

export interface DraftDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly clock: Clock;
}

/** Drafts of an organisation. */
const maxDrafts = 1_000;

/** Members of `metadata` that name the source of a draft. */
const lineage = 'x-source-';

/** People see the drafts of their organisation, services those of all. */
export function scopeOf(caller: Caller): DraftScope {
  return caller.kind === 'service' ? {} : { organizationId: organizationOf(caller) };
}

/** The organisation that a caller acts for; throws ORGANIZATION_REQUIRED. */
export function organizationOf({ organizationId }: Caller): string {
  if (organizationId === undefined) throw refusal('ORGANIZATION_REQUIRED');
  return organizationId;
}

/** The draft of a path, if the caller may see it; throws BLUEPRINT_NOT_FOUND. */
export async function getDraft(deps: Pick<DraftDeps, 'db'>, caller: Caller, id: string): Promise<Draft> {
  const draft = await findDraft(deps.db.read, scopeOf(caller), id);
  if (draft === undefined) throw refusal('BLUEPRINT_NOT_FOUND');
  return draft;
}

/** A definition without the members that this service adds, and with the lineage of its draft alone. */
export function storedForm(value: JsonObject, id: string, source: DraftSource | undefined): JsonObject {
  const kept = Object.entries(value).filter(([name]) => memberKind('blueprint', name) !== 'server');
  const { metadata, ...rest } = Object.fromEntries(kept);
  const given = isJsonObject(metadata) ? Object.entries(metadata) : [];
  const own = given.filter(([name]) => !name.startsWith(lineage));
  const labels = [...own, ...lineageOf(source)];
  return { ...rest, id, ...(labels.length > 0 && { metadata: Object.fromEntries(labels) }) };
}

function lineageOf(source: DraftSource | undefined): (readonly [string, string])[] {
  if (source === undefined) return [];
  return [
    [`${lineage}register`, source.registerId],
    [`${lineage}blueprint-id`, source.blueprintId],
    [`${lineage}version`, String(source.ordinal)],
  ];
}

/** The columns of a definition; throws DEFINITION_TOO_LARGE. */
function contentOf(definition: JsonObject, blueprintId: string) {
  const { title, description, participants, actions } = definition;
  if (Buffer.byteLength(canonicalJson(definition)) > MAX_BLUEPRINT_BYTES)
    throw refusal('DEFINITION_TOO_LARGE');
  return {
    blueprintId,
    title: typeof title === 'string' ? title : '',
    description: typeof description === 'string' ? description : '',
    participantCount: Array.isArray(participants) ? participants.length : 0,
    actionCount: Array.isArray(actions) ? actions.length : 0,
    definition: JSON.stringify(definition),
    execDefHash: execDefHash(definition),
  };
}

/** Stores a new draft in the caller's organisation. Errors: BLUEPRINT_ID_TAKEN, DRAFT_LIMIT, DEFINITION_TOO_LARGE. */
export async function createDraft(deps: DraftDeps, caller: Caller, body: DraftBody): Promise<Draft> {
  const id = body.id ?? randomUUIDv7();
  const definition = storedForm(body, id, undefined);
  return addDraft(deps, caller, { id, blueprintId: id, definition });
}

interface Adding {
  readonly id: string;
  readonly blueprintId: string;
  readonly definition: JsonObject;
  readonly source?: DraftSource | undefined;
}

/** Stores a draft under an id; errors as createDraft. */
export async function addDraft(
  { db, clock }: DraftDeps,
  caller: Caller,
  { id, blueprintId, definition, source }: Adding,
): Promise<Draft> {
  const organizationId = organizationOf(caller);
  const content = contentOf(definition, blueprintId);
  const at = new Date(clock.nowMs());
  return db.transact(async (tx) => {
    if ((await countDrafts(tx, organizationId)) >= maxDrafts) throw refusal('DRAFT_LIMIT');
    const isNew = await insertDraft(tx, { ...content, organizationId, id, source, at });
    if (!isNew) throw refusal('BLUEPRINT_ID_TAKEN');
    const draft = await findDraft(tx, { organizationId }, id);
    if (draft === undefined) throw refusal('BLUEPRINT_NOT_FOUND');
    return draft;
  });
}

/** Whether a revision satisfies If-Match (RFC 9110, section 13.1.1); without the header every one does. */
function matchesRevision(ifMatch: string | undefined, revision: number): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true;
  return ifMatch.split(',').some((tag) => tag.trim() === etagOf(revision));
}

/** Entity tag of a revision. */
export function etagOf(revision: number): string {
  return `"${revision}"`;
}

/** The change of a draft that If-Match allows; throws REVISION_MISMATCH. */
function changeOf({ clock }: DraftDeps, { draftNo, revision }: Draft, ifMatch: string | undefined) {
  if (!matchesRevision(ifMatch, revision)) throw refusal('REVISION_MISMATCH');
  const isConditional = ifMatch !== undefined && ifMatch.trim() !== '*';
  return { draftNo, revision: isConditional ? revision : undefined, at: new Date(clock.nowMs()) };
}

/** Replaces the definition of a draft; it keeps its id and lineage. Errors: REVISION_MISMATCH, DEFINITION_TOO_LARGE. */
export async function replaceDraft(
  deps: DraftDeps,
  draft: Draft,
  { body, ifMatch }: { readonly body: DraftBody; readonly ifMatch: string | undefined },
): Promise<Draft> {
  const change = changeOf(deps, draft, ifMatch);
  if (body.id !== undefined && body.id !== draft.blueprintId) throw refusal('BLUEPRINT_ID_FIXED');
  const definition = storedForm(body, draft.blueprintId, draft.source);
  const content = contentOf(definition, draft.blueprintId);
  const revision = await deps.db.transact((tx) => updateDraft(tx, change, content));
  if (revision === undefined) throw refusal('REVISION_MISMATCH');
  return { ...draft, ...content, revision, updatedAt: change.at };
}

/** Deletes a draft; its publications stay. Errors: REVISION_MISMATCH. */
export async function removeDraft(deps: DraftDeps, draft: Draft, ifMatch: string | undefined): Promise<void> {
  const change = changeOf(deps, draft, ifMatch);
  const isDone = await deps.db.transact((tx) => deleteDraft(tx, change));
  if (!isDone) throw refusal('REVISION_MISMATCH');
}

/** The definition of a draft as it was stored. */
export function parseStored({ definition }: Pick<Draft, 'definition'>): JsonObject {
  return toValue(scanJson(definition)) as JsonObject;
}
