import { readableLine } from '#core/encoding/readable.ts';
import { identifier } from '#core/identity/identifier.ts';

/** Members of a reported refusal, for HTTP and gRPC; those after `reason` are optional. */
export const refusalShape = {
  organizationId: identifier,
  action: readableLine.min(1).max(100),
  reason: readableLine.min(1).max(500),
  resourceType: readableLine.min(1).max(100),
  resourceId: readableLine.min(1).max(256),
  platformUserId: identifier,
};
