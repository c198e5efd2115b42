import { loadAll } from 'js-yaml';
import { AppError } from '#core/errors/errors.ts';
import { API_GROUP } from '../api/names.ts';
import { parseRegister, type Register } from '../api/register.ts';
import { parseTenant, type Tenant } from '../api/tenant.ts';
import { parseValidatorSet, type ValidatorSet } from '../api/validator-set.ts';
import { operatorError } from '../errors.ts';
import { isRecord } from '../kube/resource.ts';

/** Objects of our three kinds. */
export interface Objects {
  readonly tenants: readonly Tenant[];
  readonly validatorSets: readonly ValidatorSet[];
  readonly registers: readonly Register[];
}

export const noObjects: Objects = { tenants: [], validatorSets: [], registers: [] };

const maxTextBytes = 32 * 1024 * 1024;

/**
 * The objects of the three kinds in a YAML or JSON file, including items of Lists; other kinds are skipped.
 * @param namespace default namespace of objects without one
 * @throws AppError invalid INVALID_FILE, INVALID_CUSTOM_RESOURCE; the message names file, object and field
 */
export function readObjects(
  text: string,
  from: { readonly file: string; readonly namespace: string },
): Objects {
  if (Buffer.byteLength(text) > maxTextBytes) throw invalid(from.file, 'is too large');
  const found = documentsOf(text, from.file).flatMap(itemsOf).filter(isOurs);
  const named = found.map((object) => inNamespace(object, from.namespace));
  const of = <T>(kind: string, parse: (value: unknown) => T): readonly T[] =>
    named.filter((object) => object.kind === kind).map((object) => parseNamed(object, parse, from.file));
  return {
    tenants: of('Tenant', parseTenant),
    validatorSets: of('ValidatorSet', parseValidatorSet),
    registers: of('Register', parseRegister),
  };
}

function invalid(file: string, problem: string, cause?: unknown): AppError {
  return operatorError('INVALID_FILE', `${file} ${problem}`, { cause });
}

function documentsOf(text: string, file: string): readonly unknown[] {
  try {
    return loadAll(text);
  } catch (error) {
    const [line] = error instanceof Error ? error.message.split('\n') : [];
    throw invalid(file, `cannot be read: ${line ?? 'it is not YAML'}`, error);
  }
}

function itemsOf(document: unknown): readonly unknown[] {
  if (!isRecord(document)) return [];
  const items = document['items'];
  return String(document['kind']).endsWith('List') && Array.isArray(items) ? items : [document];
}

function isOurs(object: unknown): object is Readonly<Record<string, unknown>> {
  return isRecord(object) && String(object['apiVersion']).startsWith(`${API_GROUP}/`);
}

interface UnparsedObject {
  readonly kind: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
}

function inNamespace(object: Readonly<Record<string, unknown>>, namespace: string): UnparsedObject {
  const metadata = isRecord(object['metadata']) ? object['metadata'] : {};
  return { ...object, kind: object['kind'], metadata: { namespace, ...metadata } };
}

function parseNamed<T>(object: UnparsedObject, parse: (value: unknown) => T, file: string): T {
  try {
    return parse(object);
  } catch (error) {
    const problem = error instanceof AppError ? error.message : 'cannot be read';
    throw invalid(file, `${String(object.metadata['name'] ?? '(no name)')}: ${problem}`, error);
  }
}

interface ObjectWithKey {
  readonly kind: string;
  readonly metadata: { readonly namespace: string; readonly name: string };
}

/** `namespace/name`. */
export function keyOf({ metadata }: Pick<ObjectWithKey, 'metadata'>): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** The object of the same name in a list; undefined when there is none. */
export function counterpart<T extends ObjectWithKey>(of: ObjectWithKey, list: readonly T[]): T | undefined {
  return list.find((each) => keyOf(each) === keyOf(of));
}
