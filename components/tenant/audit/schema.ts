import { identifier } from '#core/identity/identifier.ts';
import { line } from '../requests/line.ts';

/** Members of a refusal that a service reports, over HTTP as over gRPC; those behind `reason` may be absent. */
export const refusalShape = {
  organizationId: identifier,
  action: line.min(1).max(100),
  reason: line.min(1).max(500),
  resourceType: line.min(1).max(100),
  resourceId: line.min(1).max(256),
  platformUserId: identifier,
};
