import { createHash } from 'node:crypto';
import type { Blueprint } from '#core/blueprint/model/blueprint.ts';
import { isReadableLine } from '#core/encoding/readable.ts';
import { parseBlueprintEvent } from '#core/events/blueprint-events.ts';
import type { Database } from '#kit/db/db.ts';
import { formatCursor, type OutboxEvent, parseCursor, readEvents } from '#kit/db/outbox.ts';
import { findPosition, lockPosition, savePosition } from '#kit/events/store.ts';
import type { InboxEntry, Inboxes } from '../../clients/inboxes.ts';
import type { WalletOwners } from '../../clients/wallet-owners.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';

/** Name of the position in `event_cursors`. */
const source = 'own-steps';
const pageRows = 50;

interface NotifyDeps {
  readonly db: Database<BlueprintDatabase>;
  /** The definition that an instance runs by; undefined when it does not resolve here. */
  readonly findBlueprint: (registerId: string, instanceId: string) => Promise<Blueprint | undefined>;
  readonly owners: Pick<WalletOwners, 'findOwners'>;
  readonly inboxes: Inboxes;
}

/** An action that a sealed step made available to a wallet. */
interface Waiting {
  readonly wallet: string;
  readonly registerId: string;
  readonly instanceId: string;
  readonly txId: string;
  readonly actionId: number;
  readonly occurredAt: string;
}

/**
 * Writes an inbox entry for each action that waits for a person, from the log of this service. The position moves behind the
 * entries of a page, and an entry is one however often it is written, so a crash repeats nothing that people see.
 * @returns whether the log is read up to its end
 */
export async function notifyPage(deps: NotifyDeps): Promise<boolean> {
  const { db } = deps;
  const position = await findPosition(db.read, source);
  const after = parseCursor(position);
  if (after === undefined) throw new Error('the stored position cannot be parsed');
  const events = await readEvents(db.read, after, pageRows);
  const last = events.at(-1);
  if (last === undefined) return true;
  for (const entry of await entriesOf(deps, events.flatMap(waitingOf))) await deps.inboxes.write(entry);
  await db.transact(async (tx) => {
    if ((await lockPosition(tx, source)) === position)
      await savePosition(tx, source, formatCursor(last.cursor));
  });
  return events.length < pageRows;
}

function waitingOf(row: OutboxEvent): Waiting[] {
  const event = parseBlueprintEvent(row.kind, row.data);
  if (event?.kind !== 'StepSealed') return [];
  const { wallet, registerId, instanceId, txId, available } = event.data;
  const occurredAt = row.createdAt.toISOString();
  return available.map((actionId) => ({ wallet, registerId, instanceId, txId, actionId, occurredAt }));
}

async function entriesOf(deps: NotifyDeps, waiting: readonly Waiting[]): Promise<InboxEntry[]> {
  if (waiting.length === 0) return [];
  const owners = await deps.owners.findOwners([...new Set(waiting.map(({ wallet }) => wallet))]);
  const entries: InboxEntry[] = [];
  for (const each of waiting) {
    const platformUserId = owners.get(each.wallet);
    if (platformUserId === undefined) continue;
    const blueprint = await deps.findBlueprint(each.registerId, each.instanceId);
    if (blueprint !== undefined) entries.push(entryOf(each, platformUserId, blueprint));
  }
  return entries;
}

function entryOf(waiting: Waiting, platformUserId: string, blueprint: Blueprint): InboxEntry {
  const { instanceId, txId, actionId, occurredAt } = waiting;
  const action = blueprint.actions.find(({ id }) => id === actionId);
  const titles = [
    action?.notification?.title,
    `${action?.title}: ${blueprint.title}`,
    'An action waits for you',
  ];
  const body = action?.notification?.body;
  return {
    platformUserId,
    category: 'Action',
    severity: 'ActionRequired',
    correlationKey: `workflow:${instanceId}`,
    // Texts of a definition that people could misread are left out.
    title: titles.find((title) => title !== undefined && isShown(title))?.slice(0, 200) ?? '',
    ...(body !== undefined && isReadableLine(body) && { summary: body }),
    detailHref: `/api/instances/${instanceId}/actions/${actionId}`,
    sourceEventId: eventId(`${txId}:${actionId}:${platformUserId}`),
    occurredAt,
  };
}

function isShown(title: string): boolean {
  return title.trim() !== '' && isReadableLine(title);
}

/** A UUID of version 8 (RFC 9562, section 5.8): the same name gives the same id. */
function eventId(name: string): string {
  const bytes = createHash('sha256').update(`inbox.action:${name}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
