/** A row of an entity set: its location and the columns of the model. */
export type Row = Readonly<Record<string, unknown>> & {
  readonly register_no: number;
  readonly docket_number: number;
  readonly position: number;
  readonly created_micros: string;
};
