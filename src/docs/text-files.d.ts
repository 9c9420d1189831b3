// Files that are imported as the text that they hold.
declare module "*.md" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/reference.js" {
  const text: string;
  export default text;
}
