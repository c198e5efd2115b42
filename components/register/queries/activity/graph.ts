import type { z } from 'zod';
import { apiTimestamp, findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { UnsealedTransaction } from '../../clients/validators.ts';
import { refusal } from '../../errors.ts';
import { findLocation } from '../../ledger/sealed/store.ts';
import { keyed, listPending, type ReadDeps } from '../../ledger/transactions/read.ts';
import type { Register } from '../../registers/state/store.ts';
import { ENTITY_SETS } from '../language/model.ts';
import type { Row } from '../language/row.ts';
import { type SearchDeps, searchRegister } from '../scan/search.ts';
import type { graphNodeSchema } from './schemas.ts';

export interface GraphDeps extends ReadDeps {
  readonly database: SearchDeps;
}

interface GraphQuery {
  readonly limit: number;
  readonly before?: string | undefined;
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
 * The transactions of a register as nodes: pending ones, newest first, then the ledger in descending order.
 * `totalCount` counts the ledger.
 *
 * @throws AppError invalid CURSOR_UNKNOWN
 */
export async function graphOf(deps: GraphDeps, register: Register, query: GraphQuery) {
  const { limit } = query;
  const before = query.before === undefined ? undefined : findTxId(query.before);
  if (query.before !== undefined && before === undefined) throw refusal('CURSOR_UNKNOWN');
  const location = before && (await findLocation(deps.db, keyed(deps, register), before));
  const waiting = location ? [] : afterCursor(await pendingNodes(deps, register), before);
  if (waiting === undefined) throw refusal('CURSOR_UNKNOWN');
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
  return { nodes: [...first, ...rows.map(sealedNode)], totalCount, hasMore: left || full };
}
