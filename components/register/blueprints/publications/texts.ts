import {
  type BlueprintPart,
  type Definition,
  type DefinitionFault,
  jsonPointer,
  memberKind,
} from '#core/blueprint/members.ts';
import { isReadableLine, isReadableText } from '#core/encoding/readable.ts';

/** Names must be one line; other texts, such as descriptions, may have several. */
const names: readonly string[] = ['title', 'name', 'organisation'];

type Path = readonly (string | number)[];

/**
 * Finds texts of a definition that would be displayed differently from how they are written, such as titles with
 * bidirectional controls. Only new publications are judged; sealed ones stay valid.
 */
export function unreadableTexts(definition: Definition): DefinitionFault[] {
  return [
    ...faultsIn('blueprint', definition, []),
    ...textsIn(definition.metadata, ['metadata']),
    ...definition.participants.flatMap((one, at) => faultsIn('participant', one, ['participants', at])),
    ...definition.actions.flatMap((action, at) => [
      ...faultsIn('action', action, ['actions', at]),
      ...(action.routes ?? []).flatMap((route, index) =>
        faultsIn('route', route, ['actions', at, 'routes', index]),
      ),
    ]),
  ];
}

function faultsIn(part: BlueprintPart, object: object, path: Path): DefinitionFault[] {
  return Object.entries(object).flatMap(([name, value]) => {
    if (memberKind(part, name) !== 'text' || typeof value !== 'string') return [];
    const isReadable = names.includes(name) ? isReadableLine(value) : isReadableText(value);
    return isReadable ? [] : [faultAt([...path, name])];
  });
}

function textsIn(texts: Readonly<Record<string, string>> | undefined, path: Path): DefinitionFault[] {
  return Object.entries(texts ?? {}).flatMap(([name, value]) =>
    isReadableLine(name) && isReadableText(value) ? [] : [faultAt([...path, name])],
  );
}

function faultAt(path: Path): DefinitionFault {
  return { location: jsonPointer(path), message: 'holds control or invisible format characters' };
}
