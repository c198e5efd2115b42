import { z } from 'zod';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { jsonPointer } from '../members.ts';
import type { JsonSchema } from '../model/values.ts';
import { typesOf } from './properties.ts';
import { placesOf, valuesUnder } from './values.ts';

const unitBytes = { KB: 1024, MB: 1024 * 1024 } as const;

/** What a field for files takes: the value of `x-file`. */
export const fileField = z.strictObject({
  /** Media types, or `type/*`; any when empty or absent. */
  accept: z.array(z.string().max(255)).max(64).optional(),
  maxSizePerFile: z
    .string()
    .regex(/^[1-9][0-9]{0,5}(?:KB|MB)$/)
    .optional(),
  maxChunks: z.int().min(1).max(10).optional(),
});

type FileField = z.output<typeof fileField>;

/** A value of a payload that a schema declares as a file. */
interface FileValue {
  /** JSON Pointer into the payload. */
  readonly path: string;
  readonly value: JsonObject;
  readonly field: FileField;
}

/** What counts of a file for a field. */
interface FittedFile {
  readonly contentType: string;
  readonly size: number;
  readonly chunkTransactionIds: readonly unknown[];
}

/** The objects of a payload that stand where its schemas declare files. The payload matches the schemas. */
export function* fileValues(schemas: readonly JsonSchema[], payload: JsonObject): Generator<FileValue> {
  for (const { path, value, schema } of valuesUnder(schemas, payload, 'x-file')) {
    const field = fileField.safeParse(schema['x-file']).data ?? {};
    const values = Array.isArray(value)
      ? value.map((each, at) => [[...path, at], each] as const)
      : [[path, value] as const];
    for (const [at, each] of values)
      if (isJsonObject(each)) yield { path: jsonPointer(at), value: each, field };
  }
}

/** A property of a payload that its schemas declare as a file, or as a list of files. */
interface FileProperty {
  /** Names from the payload on. */
  readonly path: readonly string[];
  readonly isList: boolean;
}

/**
 * The only place at which schemas declare a file. Undefined when there is none or another one, and when the place is no
 * property: an item of a list, or a name that no schema says.
 */
export function onlyFileProperty(schemas: readonly JsonSchema[]): FileProperty | undefined {
  let only: FileProperty | undefined;
  for (const { path, schema } of placesOf(schemas, 'x-file')) {
    if (path === undefined || path.length === 0) return undefined;
    if (only !== undefined && jsonPointer(only.path) !== jsonPointer(path)) return undefined;
    only = { path, isList: only?.isList === true || typesOf(schema).includes('array') };
  }
  return only;
}

/** What a file has that its field does not take; undefined when it fits. */
export function misfitOf(
  { accept = [], maxSizePerFile, maxChunks }: FileField,
  { contentType, size, chunkTransactionIds }: FittedFile,
): string | undefined {
  const [essence = ''] = contentType.toLowerCase().split(';');
  if (accept.length > 0 && !accept.some((each) => takes(each.toLowerCase(), essence.trim())))
    return 'the type of the file is not taken here';
  if (maxSizePerFile !== undefined && size > bytesOf(maxSizePerFile))
    return `the file has more than ${maxSizePerFile}`;
  if (maxChunks !== undefined && chunkTransactionIds.length > maxChunks)
    return `the file has more than ${maxChunks} chunks`;
  return undefined;
}

function takes(accepted: string, type: string): boolean {
  if (accepted === '*/*') return true;
  return accepted.endsWith('/*') ? type.startsWith(accepted.slice(0, -1)) : type === accepted;
}

function bytesOf(text: string): number {
  return Number(text.slice(0, -2)) * (text.endsWith('KB') ? unitBytes.KB : unitBytes.MB);
}
