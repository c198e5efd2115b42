import type { z } from 'zod';
import { apiTimestamp, findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { UnsealedTransaction } from '../../clients/validators.ts';
import { refusal } from '../../errors.ts';
import type { Location } from '../../ledger/sealed/rows/store.ts';
import { findLocation } from '../../ledger/sealed/store.ts';
import { keyed, listPending, type ReadDeps } from '../../ledger/transactions/read.ts';
import { getVisibleRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { ENTITY_SETS } from '../language/model.ts';
import type { Row } from '../language/row.ts';
import type { Freshness } from '../projection/freshness.ts';
import { type SearchDeps, searchRegister } from '../scan/search.ts';
import type { Asking } from './list.ts';
import type { graphNodeSchema } from './schemas.ts';

export interface GraphDeps extends ReadDeps {
  readonly database: SearchDeps;
  readonly freshness: Freshness;
}

interface GraphQuery {
  readonly limit: number;
  readonly before?: string | undefined;
}

/** The rest of the pending transactions, and the location in the ledger after which the page begins. */
interface Start {
  readonly waiting: readonly GraphNode[];
  readonly location: Location | undefined;
}

type GraphNode = z.output<typeof graphNodeSchema>;

function pendingNode({ record }: UnsealedTransaction): GraphNode {
  const parsed = parseRecord(record);
  const ticks = findTimestamp(parsed.createdAt);
  return {
    txId: parsed.txId,
    prevTxId: parsed.previousTransactionId ?? null,
    senderWallet: parsed.senderAddress,
    timeStamp: ticks === undefined ? parsed.createdAt : apiTimestamp(ticksToMs(ticks)),
    docketNumber: null,
    blueprintId: parsed.blueprintId ?? null,
    instanceId: parsed.metadata['instanceId'] ?? null,
    transactionType: parsed.type,
  };
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : null);

function sealedNode(row: Row): GraphNode {
  return {
    txId: String(row['tx_id']),
    prevTxId: textOf(row['previous_tx_id']),
    senderWallet: String(row['sender_address']),
    timeStamp: apiTimestamp(Math.floor(Number(row.created_micros) / 1_000)),
    docketNumber: row.docket_number,
    blueprintId: textOf(row['blueprint_id']),
    instanceId: textOf(row['instance_id']),
    transactionType: String(row['transaction_type']),
  };
}

/** Pending transactions, newest first; those without a record are omitted. */
async function pendingNodes(deps: GraphDeps, register: Register): Promise<GraphNode[]> {
  const waiting = await listPending(deps, register);
  return waiting
    .filter(({ record }) => record.length > 0)
    .toReversed()
    .map(pendingNode);
}

/** Pending nodes after the cursor; `undefined` when the cursor is not pending. */
function afterCursor(
  waiting: readonly GraphNode[],
  before: string | undefined,
): readonly GraphNode[] | undefined {
  if (before === undefined) return waiting;
  const index = waiting.findIndex(({ txId }) => txId === before);
  return index < 0 ? undefined : waiting.slice(index + 1);
}

/**
 * Where a page begins: among the pending transactions, or after a location of the ledger.
 * @throws AppError invalid CURSOR_UNKNOWN
 */
async function startOf(deps: GraphDeps, register: Register, before: string | undefined): Promise<Start> {
  const locate = async () => before && (await findLocation(deps.db, keyed(deps, register), before));
  const location = await locate();
  if (location) return { waiting: [], location };
  const waiting = afterCursor(await pendingNodes(deps, register), before);
  if (waiting !== undefined) return { waiting, location: undefined };
  // It may have been sealed between the two look-ups.
  const later = await locate();
  if (!later) throw refusal('CURSOR_UNKNOWN');
  return { waiting: [], location: later };
}

/**
 * The transactions of a register as nodes: pending ones, newest first, then the ledger in descending order.
 * `totalCount` counts the ledger. The ledger is read after the pending transactions, up to the height that the register
 * has then: what was sealed in between is no longer pending, and has its row.
 *
 * @throws AppError invalid CURSOR_UNKNOWN
 */
export async function graphOf(deps: GraphDeps, pending: Register, query: GraphQuery, asking: Asking) {
  const { limit } = query;
  const before = query.before === undefined ? undefined : findTxId(query.before);
  if (query.before !== undefined && before === undefined) throw refusal('CURSOR_UNKNOWN');
  const { waiting, location } = await startOf(deps, pending, before);
  const register = await getVisibleRegister(deps.db, asking.caller, pending.registerId);
  const headers = await deps.freshness.settle(register, asking.headers);
  const first = waiting.slice(0, limit);
  const { registerId, transactionCount: totalCount } = register;
  const { rows, next } = await searchRegister(deps.database, register, {
    set: ENTITY_SETS.Transactions,
    filter: undefined,
    orderings: [],
    start: {
      after: location ? { registerId, location: { ...location, micros: '0' } } : undefined,
      offset: 0,
    },
    limit: limit - first.length,
    count: false,
  });
  const left = first.length < waiting.length || next !== undefined;
  const full = first.length === limit && totalCount > 0;
  const sealed = rows.map(sealedNode);
  // sealed since they were listed as pending
  const twice = new Set(sealed.map(({ txId }) => txId));
  const nodes = [...first.filter(({ txId }) => !twice.has(txId)), ...sealed];
  return { body: { nodes, totalCount, hasMore: left || full }, headers };
}
