import {
  type ContextName,
  type ContextUse,
  findContext,
  findContextOfPath,
  PRIMARY_SLOT,
  parseRawPath,
  slotPath,
} from './contexts.ts';

/** The resolved `derivationPath` of a request. */
export interface Derivation {
  readonly path: string;
  /** the named context; absent for the primary key and raw paths */
  readonly context: ContextName | undefined;
  readonly use: ContextUse | 'primary' | 'raw';
}

/**
 * Resolves an empty or absent text to the primary key, a context name to its slot, and any other text to a raw path;
 * `undefined` when the text is not a valid path. A raw path to the key of a context has the use of that context, unless
 * that use is `signing`.
 */
export function resolveDerivation(text: string | undefined): Derivation | undefined {
  if (text === undefined || text === '') {
    return { path: slotPath(PRIMARY_SLOT), context: undefined, use: 'primary' };
  }
  const context = findContext(text);
  if (context !== undefined) return { path: slotPath(context.slot), context: context.name, use: context.use };
  const path = parseRawPath(text);
  if (path === undefined) return undefined;
  const use = findContextOfPath(path)?.use ?? 'raw';
  return { path, context: undefined, use: use === 'signing' ? 'raw' : use };
}
