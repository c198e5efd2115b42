import { judgeStep } from '#core/blueprint/steps/judge.ts';
import { parseRouting, routingText } from '#core/blueprint/steps/routing.ts';
import { compileWorkflow, type Workflow } from '#core/blueprint/steps/workflow.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import { type Step, WorkflowLedgerService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { connectService, environmentOf } from '../../harness/service-caller.ts';
import type { Stage } from '../stage.ts';

/** Steps of a page, as many as the product reads. */
const limit = 500;

/** The last step of an instance. */
interface Head {
  readonly txId: string;
  readonly type: 'Action';
  readonly routing: string;
}

type Ledger = RpcClient<typeof WorkflowLedgerService.method>;

/** Calls the register service as the workflow service does. */
export function connectLedger({ system }: Stage): Promise<{ readonly client: Ledger; close(): void }> {
  return connectService(system.state, WorkflowLedgerService, {
    as: 'service-blueprint',
    server: 'service-register',
    address: environmentOf(system.state, 'blueprint')['CHANCERY_REGISTER_GRPC'] ?? '',
  });
}

/** Judges a sealed step and makes it the last one of its instance. Publications are passed over. */
function fold(heads: Map<string, Head>, workflow: Workflow, step: Step): void {
  if (step.publicationPayload.length > 0) return;
  const record = parseRecord(step.record);
  const text = routingText(record.metadata) ?? '';
  const routing = parseRouting(text);
  if (routing === undefined) throw new Error(`the routing of ${record.txId} is malformed`);
  const [violation] = judgeStep(record, {
    workflow,
    isPinKnown: true,
    predecessor: heads.get(routing.instanceId),
    nowTicks: findTimestamp(step.sealedAt) ?? 0n,
  });
  if (violation !== undefined) throw new Error(`${record.txId}: ${violation.message}`);
  heads.set(routing.instanceId, { txId: record.txId, type: 'Action', routing: text });
}

/** Reads all steps of a register and folds them in memory; the number of its instances. */
export async function foldInMemory(
  client: Ledger,
  registerId: string,
  definition: Readonly<Record<string, unknown>>,
): Promise<number> {
  const workflow = compileWorkflow(definition);
  if (workflow === undefined) throw new Error('the definition decides no steps');
  const heads = new Map<string, Head>();
  for (let from = { docket: 0n, index: 0 }; ; ) {
    const { steps, next, height } = await client.readSteps({ registerId, from, limit });
    for (const step of steps) fold(heads, workflow, step);
    if (next === undefined || next.docket >= height) return heads.size;
    from = { docket: next.docket, index: next.index };
  }
}
