import { z } from 'zod';
import { type EdmType, ENTITY_SETS, type EntitySet, type Property } from '../language/model.ts';

const text = z.string();
const context = text.describe('URL of the model, with the set and the selected properties.');

/** The JSON format of OData 4.0 for errors (section 19). */
export const errorSchema = z
  .object({
    error: z.object({
      code: text,
      message: text,
      target: text.optional().describe('The option that cannot be read.'),
      innererror: z.object({ position: z.int() }).optional(),
      '@Chancery.traceId': text,
    }),
  })
  .meta({ id: 'ODataError' });

const values: Readonly<Record<EdmType, z.ZodType>> = {
  'Edm.String': text,
  'Edm.Boolean': z.boolean(),
  'Edm.Int64': z.int(),
  'Edm.DateTimeOffset': text.describe('ISO 8601, UTC.'),
};

/** Every property is optional, as `$select` leaves out the others. */
function propertySchema({ type, nullable }: Property): z.ZodType {
  const value = values[type];
  return (nullable ? value.nullable() : value).optional();
}

function entityFields(properties: readonly Property[]): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(properties.map((property) => [property.name, propertySchema(property)]));
}

/** A page of entities of a set. */
export function entitiesSchema(set: EntitySet) {
  return z.object({
    '@odata.context': context,
    '@odata.count': z.int().optional(),
    '@Chancery.countIsLowerBound': z.boolean().optional(),
    value: z.array(z.object(entityFields(set.properties)).meta({ id: `OData${set.entity}` })),
    '@odata.nextLink': text.optional(),
  });
}

/** One entity: the properties of its set. Those that sets have in common have the same type in each. */
export const entitySchema = z
  .object({
    '@odata.context': context,
    ...entityFields(Object.values(ENTITY_SETS).flatMap((set) => set.properties)),
  })
  .meta({ id: 'ODataEntity' });

export const serviceDocumentSchema = z
  .object({
    '@odata.context': context,
    value: z.array(z.object({ name: text, kind: z.literal('EntitySet'), url: text })),
  })
  .meta({ id: 'ODataServiceDocument' });

/** The model as CSDL JSON 4.0; the namespace holds its types. */
export const modelSchema = z.object({
  $Version: text,
  $EntityContainer: text,
  Chancery: z.record(z.string(), z.unknown()),
});
