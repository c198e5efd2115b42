import { identifier } from '#core/identity/identifier.ts';
import { line } from '../requests/line.ts';

/** Members of a reported refusal, for HTTP and gRPC; those after `reason` are optional. */
export const refusalShape = {
  organizationId: identifier,
  action: line.min(1).max(100),
  reason: line.min(1).max(500),
  resourceType: line.min(1).max(100),
  resourceId: line.min(1).max(256),
  platformUserId: identifier,
};
