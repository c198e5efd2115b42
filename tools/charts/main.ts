// Generates parts of the chart and of spire/: values.yaml and the table in the README from the schema of the values, the tags of
// the servers' images, and the network edges and identities from the catalogue of services.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { renderServerTags } from '../images/servers.ts';
import { renderChartServices, renderEntries, withClientIds } from './services.ts';
import { renderValues, withTable } from './values.ts';

const at = (name: string): string => fileURLToPath(new URL(`../../charts/chancery/${name}`, import.meta.url));
const spire = (name: string): string => fileURLToPath(new URL(`../../spire/${name}`, import.meta.url));
const schema: unknown = JSON.parse(readFileSync(at('values.schema.json'), 'utf8'));

writeFileSync(at('values.yaml'), renderValues(schema));
writeFileSync(at('README.md'), withTable(readFileSync(at('README.md'), 'utf8'), schema));
writeFileSync(
  at('files/image-tags.json'),
  renderServerTags(fileURLToPath(new URL('../..', import.meta.url))),
);
writeFileSync(at('files/services.json'), renderChartServices());
writeFileSync(spire('entries.json'), renderEntries());
const spiffeIds = spire('cluster-spiffe-ids.yaml');
writeFileSync(spiffeIds, withClientIds(readFileSync(spiffeIds, 'utf8')));
