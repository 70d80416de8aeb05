//! The slow path: finds and evaluates a whole row of call frame information.

use gimli::{
    CfaRule, Encoding, FrameDescriptionEntry, RegisterRule, UnwindContext, UnwindExpression,
    UnwindSection, UnwindTableRow,
};

use crate::abi::Abi;
use crate::cfi::{Reader, RowVisitor};
use crate::expression::evaluate;
use crate::module::ModuleUnwindInfo;
use crate::regs::UserRegs;
use crate::rule::Rule;
use crate::stack::StackDump;
use crate::stop_reason::StopReason;

/// A place in a module.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) module: &'a ModuleUnwindInfo,
    pub(crate) svma: u64,
}

/// The registers of a caller.
pub(crate) struct Caller {
    pub(crate) regs: UserRegs,
    pub(crate) ip: u64,
    /// True where a signal interrupted the caller at `ip`: it is no return address.
    pub(crate) interrupted: bool,
}

/// The compact rule for `svma`.
pub(crate) fn find_rule<A: Abi>(
    module: &ModuleUnwindInfo,
    svma: u64,
    context: &mut UnwindContext<usize>,
) -> Rule {
    if let (Some(switch), _) = module.stack_switches().at(svma) {
        return Rule::of_switch(switch);
    }
    let mut finder = RuleFinder::<A>(std::marker::PhantomData);
    module.visit_row(svma, context, &mut finder).unwrap_or(Rule::Uncovered)
}

struct RuleFinder<A>(std::marker::PhantomData<A>);

impl<A: Abi> RowVisitor for RuleFinder<A> {
    type Output = Rule;

    fn visit<'a, S: UnwindSection<Reader<'a>>>(
        &mut self,
        _section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
    ) -> Rule {
        if fde.is_signal_trampoline() {
            return Rule::General;
        }
        Rule::from_row::<A>(row, fde)
    }
}

/// Evaluates the row at `place` with the registers of the frame there.
pub(crate) fn step<A: Abi>(
    place: Row<'_>,
    regs: &UserRegs,
    stack: &StackDump<'_>,
    context: &mut UnwindContext<usize>,
) -> Result<Caller, StopReason> {
    let mut stepper = Stepper::<A> { regs, stack, _abi: std::marker::PhantomData };
    place
        .module
        .visit_row(place.svma, context, &mut stepper)
        .unwrap_or(Err(StopReason::BadUnwindInfo))
}

struct Stepper<'s, A> {
    regs: &'s UserRegs,
    stack: &'s StackDump<'s>,
    _abi: std::marker::PhantomData<A>,
}

impl<A: Abi> RowVisitor for Stepper<'_, A> {
    type Output = Result<Caller, StopReason>;

    fn visit<'a, S: UnwindSection<Reader<'a>>>(
        &mut self,
        section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
    ) -> Result<Caller, StopReason> {
        let frame = Frame { section, encoding: fde.cie().encoding(), stepper: self };
        let cfa = frame.cfa(row.cfa())?;
        let ra_register = usize::from(fde.cie().return_address_register().0);
        let ip = match row.register(gimli::Register(ra_register as u16)) {
            Some(RegisterRule::Undefined) => return Err(StopReason::EndOfStack),
            Some(rule) => frame.register(&rule, ra_register, cfa)?,
            None => {
                let register = A::LR.ok_or(StopReason::BadUnwindInfo)?;
                self.regs.get(register).ok_or(StopReason::MissingRegister)?
            }
        };
        let interrupted = fde.is_signal_trampoline();
        let mut regs = *self.regs;
        if !interrupted {
            regs.keep(A::PRESERVED);
        }
        regs.set(A::SP, cfa);
        for (register, rule) in row.registers() {
            let register = usize::from(register.0);
            // A register that cannot be restored is forgotten; it is missed only if a rule further
            // out needs it. The link register is overwritten by calls, so only a signal keeps it.
            let lost_by_call = !interrupted && Some(register) == A::LR;
            match frame.register(rule, register, cfa) {
                Ok(value) if !lost_by_call && UserRegs::has(register) => regs.set(register, value),
                Err(StopReason::OutsideStack) => {}
                Err(_) if UserRegs::has(register) => regs.keep(!(1 << register)),
                _ => {}
            }
        }
        regs.set(A::IP, ip);
        Ok(Caller { regs, ip, interrupted })
    }
}

/// Evaluates the rules of one row.
struct Frame<'f, 's, S, A> {
    section: &'f S,
    encoding: Encoding,
    stepper: &'f Stepper<'s, A>,
}

impl<'a, S: UnwindSection<Reader<'a>>, A: Abi> Frame<'_, '_, S, A> {
    fn cfa(&self, rule: &CfaRule<usize>) -> Result<u64, StopReason> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = self.stepper.regs.get(register.0.into());
                Ok(base.ok_or(StopReason::MissingRegister)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.expression(expression, None),
        }
    }

    fn register(
        &self,
        rule: &RegisterRule<usize>,
        register: usize,
        cfa: u64,
    ) -> Result<u64, StopReason> {
        let (regs, stack) = (self.stepper.regs, self.stepper.stack);
        match rule {
            RegisterRule::Offset(offset) => stack.read_u64(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
            RegisterRule::SameValue => regs.get(register).ok_or(StopReason::MissingRegister),
            RegisterRule::Register(other) => {
                regs.get(other.0.into()).ok_or(StopReason::MissingRegister)
            }
            RegisterRule::Expression(expression) => {
                stack.read_u64(self.expression(expression, Some(cfa))?)
            }
            RegisterRule::ValExpression(expression) => self.expression(expression, Some(cfa)),
            _ => Err(StopReason::BadUnwindInfo),
        }
    }

    fn expression(
        &self,
        expression: &UnwindExpression<usize>,
        initial: Option<u64>,
    ) -> Result<u64, StopReason> {
        let expression = expression.get(self.section).map_err(|_| StopReason::BadUnwindInfo)?;
        let Stepper { regs, stack, .. } = self.stepper;
        evaluate(expression, self.encoding, initial, regs, stack)
    }
}
