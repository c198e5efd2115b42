import { parseRouting, type Routing, routingText } from '#core/blueprint/steps/routing.ts';
import type { PlacedRecord } from '../../clients/ledger.ts';

/** A record that is a step, with its routing. */
export interface SealedStep {
  readonly placed: PlacedRecord;
  readonly routing: Routing;
  readonly routingText: string;
}

/** The step of a record; undefined for any other one, and for a routing that is malformed. */
export function findStep(placed: PlacedRecord): SealedStep | undefined {
  const { type, metadata } = placed.record;
  const text = type === 'Action' || type === 'Rejection' ? routingText(metadata) : undefined;
  const routing = text === undefined ? undefined : parseRouting(text);
  return text === undefined || routing === undefined ? undefined : { placed, routing, routingText: text };
}
