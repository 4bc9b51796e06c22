/** The names of a generated proto enum's values, which are also the database enum's values. */
export type EnumName<E> = Exclude<keyof E, number | "UNSPECIFIED"> & string;
