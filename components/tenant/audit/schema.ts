import { z } from 'zod';
import { line } from '../requests/line.ts';

const id = z.guid().toLowerCase();

/** Members of a refusal that a service reports, over HTTP as over gRPC; those behind `reason` may be absent. */
export const refusalShape = {
  organizationId: id,
  action: line.min(1).max(100),
  reason: line.min(1).max(500),
  resourceType: line.min(1).max(100),
  resourceId: line.min(1).max(256),
  platformUserId: id,
};
