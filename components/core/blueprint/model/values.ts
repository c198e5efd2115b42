import { z } from 'zod';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';

/** A schema of JSON Schema 2020-12. */
export type JsonSchema = boolean | JsonObject;

/** A text of 1 to `most` characters. */
export const word = (most: number) => z.string().min(1).max(most);

/** A text of at most `most` characters. */
export const text = (most: number) => z.string().max(most);

export const actionId = z.int().min(0).max(1_000_000);

/** A JSON Pointer; its syntax is judged with the rules, which know where it points. */
export const pointer = z.string().max(500);

/** JSON Logic; its operators are judged when it is compiled. */
export const logic = z.unknown();

export const schema = z.custom<JsonSchema>((value) => typeof value === 'boolean' || isJsonObject(value), {
  error: 'expected a JSON Schema: an object or a boolean',
});

/** ISO 8601 duration. */
export const duration = z
  .string()
  .regex(
    /^P(?=[0-9]|T[0-9])(?:[0-9]{1,6}Y)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}W)?(?:[0-9]{1,6}D)?(?:T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}S)?)?$/,
    { error: 'expected an ISO 8601 duration' },
  );
