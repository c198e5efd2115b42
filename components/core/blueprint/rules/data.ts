import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { innerSchemas } from '../json-schema.ts';
import { jsonPointer } from '../members.ts';
import { errorAt, type Finding, warningAt } from '../model/finding.ts';
import type { JsonSchema } from '../model/values.ts';
import { fileField } from '../schemas/file-fields.ts';
import { judgeSchemas } from '../schemas/judge.ts';
import { typesOf } from '../schemas/properties.ts';
import type { RuleContext } from './context.ts';

type Path = readonly (string | number)[];

function isObjectSchema(schema: unknown): boolean {
  return isJsonObject(schema) && typesOf(schema).includes('object');
}

function* fileFields(schema: JsonObject, path: Path): Generator<Finding> {
  const file = schema['x-file'];
  if (file === undefined) return;
  const location = jsonPointer([...path, 'x-file']);
  const isList = typesOf(schema).includes('array') && isObjectSchema(schema['items']);
  if (!isObjectSchema(schema) && !isList) {
    yield errorAt(
      location,
      'VAL_BP_SCHEMA_FILE',
      'A field for files has type object, or is a list of objects',
    );
  }
  if (!fileField.safeParse(file).success) {
    const message =
      'Expected accept (media types), maxSizePerFile such as "16MB" or "512KB", and maxChunks up to 10';
    yield errorAt(location, 'VAL_BP_SCHEMA_FILE', message);
  }
}

function* offerFields(schema: JsonObject, path: Path): Generator<Finding> {
  const offer = schema['x-credential-offer'];
  if (offer === undefined || offer === false) return;
  const location = jsonPointer([...path, 'x-credential-offer']);
  if (offer !== true || !isObjectSchema(schema)) {
    yield errorAt(
      location,
      'VAL_BP_012',
      'x-credential-offer is true and belongs to a property of type object',
    );
    return;
  }
  const { required } = schema;
  if (Array.isArray(required) && required.includes('credential_offer_uri')) return;
  yield warningAt(location, 'WARN_BP_006', 'The offer should require credential_offer_uri');
}

function* fields(schema: unknown, path: Path): Generator<Finding> {
  if (!isJsonObject(schema)) return;
  yield* fileFields(schema, path);
  yield* offerFields(schema, path);
  for (const [step, inner] of innerSchemas(schema)) yield* fields(inner, [...path, ...step]);
}

function* judged(schemas: readonly JsonSchema[], path: Path): Generator<Finding> {
  yield* judgeSchemas(schemas, path);
  for (const [at, schema] of schemas.entries()) yield* fields(schema, [...path, at]);
}

/** Schemas of payloads and of rejections can be compiled, at a bounded cost, and their fields make sense. */
export function* dataRules({ blueprint }: RuleContext): Generator<Finding> {
  for (const [index, { dataSchemas = [], rejectionConfig }] of blueprint.actions.entries()) {
    yield* judged(dataSchemas, ['actions', index, 'dataSchemas']);
    const rejection = rejectionConfig?.rejectionSchema;
    if (rejection === undefined) continue;
    const path = ['actions', index, 'rejectionConfig', 'rejectionSchema'];
    for (const finding of judgeSchemas([rejection], path)) {
      // The only schema of its list stands at the path itself.
      const [own] = [jsonPointer(path)];
      yield { ...finding, location: `${own}${finding.location.slice(own.length + 2)}` };
    }
  }
}
