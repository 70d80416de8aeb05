//! DWARF expressions in call frame information.

use gimli::{
    Encoding, Evaluation, EvaluationResult, EvaluationStorage, Expression, Location, Value,
};

use crate::cfi::Reader;
use crate::regs::UserRegs;
use crate::stack::StackDump;
use crate::stop_reason::StopReason;

/// Steps that an expression may take; real ones take about ten.
const MAX_EXPRESSION_STEPS: u32 = 1000;

/// Keeps the evaluation's state in place of the heap.
struct InPlace;

impl<'a> EvaluationStorage<Reader<'a>> for InPlace {
    type Stack = [Value; 64];
    type ExpressionStack = [(Reader<'a>, Reader<'a>); 4];
    type Result = [gimli::Piece<Reader<'a>>; 1];
}

/// Evaluates `expression`, with `initial` (the CFA, for register rules) on its stack.
pub(crate) fn evaluate(
    expression: Expression<Reader<'_>>,
    encoding: Encoding,
    initial: Option<u64>,
    regs: &UserRegs,
    stack: &StackDump<'_>,
) -> Result<u64, StopReason> {
    let mut evaluation = Evaluation::<Reader<'_>, InPlace>::new_in(expression.0, encoding);
    evaluation.set_max_iterations(MAX_EXPRESSION_STEPS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let bad = |_| StopReason::BadUnwindInfo;
    let mut state = evaluation.evaluate().map_err(bad)?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = regs.get(register.0.into()).ok_or(StopReason::MissingRegister)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                evaluation.resume_with_memory(Value::Generic(stack.read_sized(address, size)?))
            }
            _ => return Err(StopReason::BadUnwindInfo),
        }
        .map_err(bad)?;
    }
    match evaluation.as_result().last().map(|piece| piece.location) {
        Some(Location::Address { address }) => Ok(address),
        Some(Location::Value { value }) => value.to_u64(u64::MAX).map_err(bad),
        _ => Err(StopReason::BadUnwindInfo),
    }
}
