import type { JsonObject } from '../../encoding/json.ts';
import type { Route } from '../model/blueprint.ts';
import { valueAt } from '../pointer.ts';

/** The decision that a route announces, for the participants. */
interface DecisionNotice {
  readonly adverse: boolean;
  readonly reasonCode: string | undefined;
  /** Text of the reason in the pinned definition. */
  readonly reason: string | undefined;
}

type NoticeRoute = Pick<Route, 'x-decision-notice'>;

/**
 * The reason code that a step on this route states in its clear metadata: the value of the notice's field when it is one
 * of its reasons, and nothing else, because data is not clear.
 */
export function reasonCodeOf(route: NoticeRoute, processed: JsonObject): string | undefined {
  const notice = route['x-decision-notice'];
  if (notice?.reasonCodeField === undefined) return undefined;
  const code = valueAt(processed, notice.reasonCodeField);
  return typeof code === 'string' && Object.hasOwn(notice.reasons ?? {}, code) ? code : undefined;
}

/** The notice of a route that was taken with a reason code; undefined when the route has none. */
export function decisionNotice(
  route: NoticeRoute,
  reasonCode: string | undefined,
): DecisionNotice | undefined {
  const notice = route['x-decision-notice'];
  if (notice === undefined) return undefined;
  const { adverse, reasons = {} } = notice;
  const reason =
    reasonCode !== undefined && Object.hasOwn(reasons, reasonCode) ? reasons[reasonCode] : undefined;
  return { adverse, reasonCode, reason };
}
