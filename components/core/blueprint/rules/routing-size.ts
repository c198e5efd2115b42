import { errorAt, type Finding } from '../model/finding.ts';
import { MAX_ROUTING_LENGTH } from '../steps/routing.ts';
import { compileWorkflow } from '../steps/workflow.ts';
import { worstRoutingLength } from '../steps/worst-routing.ts';
import type { RuleContext } from './context.ts';

/** Participants that may be bound while an instance runs. */
const MAX_OPEN_PARTICIPANTS = 16;

/** Every state that an instance can reach fits into the metadata of a step. */
export function* routingSize({ blueprint, openIds }: RuleContext): Generator<Finding> {
  if (openIds.size > MAX_OPEN_PARTICIPANTS) {
    const message = `${openIds.size} participants are open; at most ${MAX_OPEN_PARTICIPANTS} may be: give others a walletAddress`;
    yield errorAt('/participants', 'VAL_BP_ROUTING_SIZE', message);
    return;
  }
  const workflow = compileWorkflow(blueprint);
  if (workflow === undefined) return;
  const length = worstRoutingLength(workflow);
  if (length <= MAX_ROUTING_LENGTH) return;
  const message = `The state of an instance may need ${length} characters, and a step holds ${MAX_ROUTING_LENGTH}; use fewer parallel branches, open participants or shorter ids`;
  yield errorAt('/actions', 'VAL_BP_ROUTING_SIZE', message);
}
