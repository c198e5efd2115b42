import { z } from 'zod';
import { violation } from '#core/errors/errors.ts';
import { operatorError } from '../errors.ts';
import { integer, text } from './fields.ts';
import { API_GROUP_VERSION, type ManagedKind } from './names.ts';

/** Metadata as the API server and other programs write it. Unknown members are dropped; nothing is refused. */
const metadataSchema = z.object({
  name: z.string().min(1),
  namespace: z.string().default(''),
  uid: z.string().default(''),
  resourceVersion: z.string().default(''),
  generation: z.number().default(0),
  creationTimestamp: z.string().optional().catch(undefined),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).default({}).catch({}),
  annotations: z.record(z.string(), z.string()).default({}).catch({}),
  finalizers: z.array(z.string()).default([]).catch([]),
});

/** Metadata of an object. Members that only the API server sets are empty in an object read from a file. */
export type ObjectMetadata = Readonly<z.output<typeof metadataSchema>>;

const conditionSchema = z.object({
  type: text({ min: 1, max: 316 }).describe('Type of the condition.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Status of the condition.'),
  observedGeneration: integer(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Generation of the object that the condition describes.'),
  lastTransitionTime: text({ max: 64 })
    .meta({ format: 'date-time' })
    .describe('When the status last changed.'),
  reason: text({ min: 1, max: 128 }).describe('Reason from the closed list in the documentation.'),
  message: text({ max: 4096 }).describe('What happened, to which object, and the remedy.'),
});

/** A condition in a status. */
export type Condition = Readonly<z.output<typeof conditionSchema>>;

/** Members of every status. */
export const statusFields = {
  observedGeneration: integer(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Generation of the object that this status describes.'),
  conditions: z
    .array(conditionSchema)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .optional()
    .describe('Conditions of the object, one per type.'),
} as const;

/** An object of one of our kinds. */
export interface CustomResource<Spec, Status> {
  readonly apiVersion: typeof API_GROUP_VERSION;
  readonly kind: ManagedKind;
  readonly metadata: ObjectMetadata;
  readonly spec: Spec;
  readonly status: Status;
}

/** A status schema that drops each member it cannot read. Another version of the operator may have written it. */
export function tolerant<Shape extends z.ZodRawShape>(status: z.ZodObject<Shape>) {
  const shape = Object.fromEntries(
    Object.entries(status.shape).map(([name, member]) => [
      name,
      (member as z.ZodType).optional().catch(undefined),
    ]),
  );
  return z.object(shape).catch({}) as z.ZodType as z.ZodType<Partial<z.output<z.ZodObject<Shape>>>>;
}

function fieldOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`))
    .join('');
}

/**
 * Creates the parser of a kind. It applies the API server's defaults and refuses unknown or invalid members of the
 * spec. Metadata and status are read tolerantly.
 * @throws AppError invalid INVALID_CUSTOM_RESOURCE with one violation per field
 */
export function parserOf<Spec, Status>(
  kind: ManagedKind,
  spec: z.ZodType<Spec>,
  status: z.ZodType<Status>,
): (value: unknown) => CustomResource<Spec, Status> {
  const schema = z.object({
    apiVersion: z.literal(API_GROUP_VERSION),
    kind: z.literal(kind),
    metadata: metadataSchema,
    spec,
    status: status.prefault({} as never),
  });
  return (value) => {
    const result = schema.safeParse(value);
    if (result.success) return result.data as CustomResource<Spec, Status>;
    const violations = result.error.issues.map((issue) =>
      violation('INVALID_CUSTOM_RESOURCE', issue.message, fieldOf(issue.path)),
    );
    const first = violations[0];
    const text = `${kind} is not valid: ${first?.field ?? 'object'}: ${first?.message ?? 'malformed'}`;
    throw operatorError('INVALID_CUSTOM_RESOURCE', text, { violations });
  };
}
