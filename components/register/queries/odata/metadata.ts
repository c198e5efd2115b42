import type { z } from 'zod';
import { ENTITY_SETS, type EntitySet, type Property } from '../language/model.ts';
import type { serviceDocumentSchema } from './schemas.ts';

const namespace = 'Chancery';
const sets = Object.values(ENTITY_SETS);

function propertyXml(property: Property): string {
  const nullable = property.nullable ? '' : ' Nullable="false"';
  const precision = property.type === 'Edm.DateTimeOffset' ? ' Precision="6"' : '';
  return `        <Property Name="${property.name}" Type="${property.type}"${nullable}${precision}/>`;
}

function entityXml(set: EntitySet): string {
  const keys = set.keys.map((key) => `          <PropertyRef Name="${key}"/>`);
  return [
    `      <EntityType Name="${set.entity}">`,
    '        <Key>',
    ...keys,
    '        </Key>',
    ...set.properties.map(propertyXml),
    '      </EntityType>',
  ].join('\n');
}

/** The metadata document as CSDL XML 4.0. */
export function metadataXml(): string {
  const entitySets = sets.map(
    (set) => `        <EntitySet Name="${set.name}" EntityType="${namespace}.${set.entity}"/>`,
  );
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx">',
    '  <edmx:DataServices>',
    `    <Schema Namespace="${namespace}" xmlns="http://docs.oasis-open.org/odata/ns/edm">`,
    ...sets.map(entityXml),
    '      <EntityContainer Name="Container">',
    ...entitySets,
    '      </EntityContainer>',
    '    </Schema>',
    '  </edmx:DataServices>',
    '</edmx:Edmx>',
    '',
  ].join('\n');
}

function propertyJson(property: Property) {
  return {
    ...(property.type !== 'Edm.String' && { $Type: property.type }),
    ...(property.nullable && { $Nullable: true }),
    ...(property.type === 'Edm.DateTimeOffset' && { $Precision: 6 }),
  };
}

/** The metadata document as CSDL JSON. */
export function metadataJson(): object {
  const entities = sets.map((set) => [
    set.entity,
    {
      $Kind: 'EntityType',
      $Key: set.keys,
      ...Object.fromEntries(set.properties.map((property) => [property.name, propertyJson(property)])),
    },
  ]);
  const container = sets.map((set) => [set.name, { $Collection: true, $Type: `${namespace}.${set.entity}` }]);
  return {
    $Version: '4.0',
    $EntityContainer: `${namespace}.Container`,
    [namespace]: {
      ...Object.fromEntries(entities),
      Container: { $Kind: 'EntityContainer', ...Object.fromEntries(container) },
    },
  };
}

/** The service document: the list of entity sets. */
export function serviceDocument(base: string): z.output<typeof serviceDocumentSchema> {
  return {
    '@odata.context': `${base}$metadata`,
    value: sets.map(({ name }) => ({ name, kind: 'EntitySet', url: name })),
  };
}
